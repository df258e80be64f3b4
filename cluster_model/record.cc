#include "cluster_model/record.h"

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace closeknit {

absl::string_view TableName(Table table) {
  switch (table) {
    case Table::kMeta:
      return "meta";
    case Table::kFabric:
      return "fabric";
    case Table::kNodes:
      return "nodes";
    case Table::kJobs:
      return "jobs";
    case Table::kRequests:
      return "requests";
  }
  CHECK(false) << "table " << static_cast<int>(table);
}

std::string JobKey(JobId job) {
  std::string key(8, '\0');
  for (int i = 0; i < 8; ++i) key[i] = static_cast<char>(job >> (56 - 8 * i));
  return key;
}

std::string RequestKey(absl::string_view user, absl::string_view request) {
  return absl::StrCat(user, absl::string_view("\0", 1), request);
}

}  // namespace closeknit
