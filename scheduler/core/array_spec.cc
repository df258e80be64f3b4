#include "scheduler/core/array_spec.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/errors.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr uint32_t kMaxIndex = 4'000'000'000;

absl::Status Wrong(absl::string_view part, absl::string_view what) {
  return InvalidField("array", absl::StrCat("'", part, "': ", what, "; accepted are \"0-9\", \"1,3,5-7\", \"0-100:10\", \"0-99%4\""));
}

absl::StatusOr<uint32_t> ParseNumber(absl::string_view part, absl::string_view text) {
  uint32_t number = 0;
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  if (!digits) return Wrong(part, absl::StrCat("'", text, "' is not a number"));
  if (!absl::SimpleAtoi(text, &number) || number > kMaxIndex) return Wrong(part, absl::StrCat(text, " is above ", kMaxIndex));
  return number;
}

// "7", "5-7" or "0-100:10".
absl::Status AddPart(absl::string_view part, int max_tasks, std::vector<uint32_t>* tasks) {
  const std::pair<absl::string_view, absl::string_view> range_step = absl::StrSplit(part, absl::MaxSplits(':', 1));
  const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(range_step.first, absl::MaxSplits('-', 1));
  const bool is_range = range_step.first.find('-') != absl::string_view::npos;
  const bool has_step = part.find(':') != absl::string_view::npos;
  ASSIGN_OR_RETURN(const uint32_t first, ParseNumber(part, ends.first));
  uint32_t last = first, step = 1;
  if (is_range) {
    ASSIGN_OR_RETURN(last, ParseNumber(part, ends.second));
  }
  if (has_step) {
    ASSIGN_OR_RETURN(step, ParseNumber(part, range_step.second));
    if (!is_range) return Wrong(part, "a step needs a range");
    if (step == 0) return Wrong(part, "a step of 0");
  }
  if (last < first) return Wrong(part, "the range runs down");
  const uint64_t count = (uint64_t{last} - first) / step + 1;
  if (tasks->size() + count > static_cast<uint64_t>(max_tasks)) {
    return InvalidField("array", absl::StrCat("more than ", max_tasks, " tasks"));
  }
  for (uint64_t i = 0; i < count; ++i) tasks->push_back(first + i * step);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ArraySpec> ParseArraySpec(absl::string_view text, int max_tasks) {
  ArraySpec array;
  const std::pair<absl::string_view, absl::string_view> tasks_limit = absl::StrSplit(text, absl::MaxSplits('%', 1));
  if (text.find('%') != absl::string_view::npos) {
    ASSIGN_OR_RETURN(const uint32_t limit, ParseNumber(text, tasks_limit.second));
    if (limit == 0) return Wrong(text, "a limit of 0 tasks at once");
    array.at_once = static_cast<int>(std::min<uint32_t>(limit, max_tasks));
  }
  for (const absl::string_view part : absl::StrSplit(tasks_limit.first, ',')) RETURN_IF_ERROR(AddPart(part, max_tasks, &array.tasks));
  std::sort(array.tasks.begin(), array.tasks.end());
  const auto twice = std::adjacent_find(array.tasks.begin(), array.tasks.end());
  if (twice != array.tasks.end()) return InvalidField("array", absl::StrCat("task ", *twice, " is given twice"));
  return array;
}

}  // namespace closeknit
