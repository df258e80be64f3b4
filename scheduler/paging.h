// Pages of lists: sizes and tokens.
#ifndef CLOSEKNIT_SCHEDULER_PAGING_H_
#define CLOSEKNIT_SCHEDULER_PAGING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/base/errors.h"
#include "proto/base/host_list.h"
#include "proto/base/status_macros.h"

namespace closeknit {

inline constexpr uint32_t kDefaultPageSize = 1'000;
inline constexpr uint32_t kMaxPageSize = 10'000;

// The page size to use for the one asked for (0: the default).
inline absl::StatusOr<uint32_t> PageSize(uint32_t asked) {
  if (asked > kMaxPageSize) return InvalidField("page_size", absl::StrCat(asked, " is too large; 0..", kMaxPageSize));
  return asked == 0 ? kDefaultPageSize : asked;
}

// All names of some host lists.
inline absl::StatusOr<absl::flat_hash_set<std::string>> HostNames(const google::protobuf::RepeatedPtrField<std::string>& lists) {
  absl::flat_hash_set<std::string> names;
  for (int i = 0; i < lists.size(); ++i) {
    absl::StatusOr<std::vector<std::string>> hosts = ExpandHostList(lists[i]);
    if (!hosts.ok()) return InvalidField(absl::StrCat("nodes[", i, "]"), hosts.status().message());
    names.insert(std::make_move_iterator(hosts->begin()), std::make_move_iterator(hosts->end()));
  }
  return names;
}

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_PAGING_H_
