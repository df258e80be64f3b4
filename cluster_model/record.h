// Records of the store as the core sees them: tables, keys, and changes to be committed. Pure; the store itself is in store/.
#ifndef CLOSEKNIT_CLUSTER_MODEL_RECORD_H_
#define CLOSEKNIT_CLUSTER_MODEL_RECORD_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "cluster_model/ids.h"

namespace closeknit {

// A table is a column family of the same name.
enum class Table { kMeta, kFabric, kNodes, kJobs, kRequests };
inline constexpr Table kAllTables[] = {Table::kMeta, Table::kFabric, Table::kNodes, Table::kJobs, Table::kRequests};
absl::string_view TableName(Table table);

// One change. Values are serialised messages of closeknit/v1/store.proto.
struct RecordWrite {
  Table table = Table::kMeta;
  std::string key;
  std::optional<std::string> value;  // nullopt: delete
};

std::string JobKey(JobId job);                                              // 8 bytes big-endian: keys sort as ids
std::string RequestKey(absl::string_view user, absl::string_view request);  // user NUL request

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_RECORD_H_
