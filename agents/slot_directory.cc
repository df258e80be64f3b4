#include "agents/slot_directory.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agents/rank_environment.h"

namespace closeknit {

std::string SlotName(const v1::SlotId& id) { return absl::StrCat(id.job_id(), ".", id.attempt()); }

std::optional<v1::SlotId> ParseSlotName(absl::string_view name) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(name, absl::MaxSplits('.', 1));
  uint64_t job = 0;
  uint32_t attempt = 0;
  if (!absl::SimpleAtoi(parts.first, &job) || !absl::SimpleAtoi(parts.second, &attempt)) return std::nullopt;
  v1::SlotId id;
  id.set_job_id(job);
  id.set_attempt(attempt);
  if (SlotName(id) != name) return std::nullopt;
  return id;
}

std::string SlotDirectory::mark() const { return absl::StrCat("KNIT_HOSTFILE=", path_, "/", kHostFileName); }

}  // namespace closeknit
