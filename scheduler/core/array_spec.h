// Job arrays as sbatch writes them: "0-9", "1,3,5-7", "0-100:10", "0-99%4".
#ifndef CLOSEKNIT_SCHEDULER_CORE_ARRAY_SPEC_H_
#define CLOSEKNIT_SCHEDULER_CORE_ARRAY_SPEC_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace closeknit {

struct ArraySpec {
  std::vector<uint32_t> tasks;  // task indices, ascending
  int at_once = 0;              // at most so many tasks at the same time; 0: no limit
};

// Indices are 0..4,000,000,000. Errors (kInvalidArgument, field "array") name the part at fault: an empty or negative part, a range that
// runs down, a step of 0, an index given twice, more than max_tasks tasks, a limit of 0.
absl::StatusOr<ArraySpec> ParseArraySpec(absl::string_view text, int max_tasks);

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_CORE_ARRAY_SPEC_H_
