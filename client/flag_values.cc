#include "client/flag_values.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr int64_t kMaxSeconds = int64_t{100} * 365 * 86400;  // keeps the arithmetic from overflowing

absl::Status BadTime(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is no time; accepted are minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS, 90s, 1h30m, UNLIMITED"));
}

bool ParseDigits(absl::string_view text, int64_t* value) {
  return !text.empty() && text.size() <= 10 && std::all_of(text.begin(), text.end(), absl::ascii_isdigit) && absl::SimpleAtoi(text, value);
}

// "H:M:S" from the left, as many fields as there are, in units that begin with `units[0]`.
absl::StatusOr<int64_t> Fields(absl::string_view whole, absl::string_view text, std::vector<int64_t> units) {
  const std::vector<absl::string_view> fields = absl::StrSplit(text, ':');
  if (fields.size() > units.size()) return BadTime(whole);
  int64_t seconds = 0;
  for (size_t i = 0; i < fields.size(); ++i) {
    int64_t value = 0;
    if (!ParseDigits(fields[i], &value)) return BadTime(whole);
    seconds += value * units[i];
  }
  return seconds;
}

}  // namespace

absl::StatusOr<absl::Duration> ParseTimeLimit(absl::string_view text) {
  if (absl::EqualsIgnoreCase(text, "unlimited") || absl::EqualsIgnoreCase(text, "infinite")) return absl::InfiniteDuration();
  absl::Duration with_units;
  const bool has_unit = !text.empty() && absl::ascii_isalpha(text.back());
  if (has_unit && absl::ParseDuration(std::string(text), &with_units)) {
    if (with_units <= absl::ZeroDuration()) return BadTime(text);
    return with_units;
  }
  int64_t seconds = 0;
  const size_t dash = text.find('-');
  if (dash != absl::string_view::npos) {
    int64_t days = 0;
    if (!ParseDigits(text.substr(0, dash), &days)) return BadTime(text);
    ASSIGN_OR_RETURN(seconds, Fields(text, text.substr(dash + 1), {3600, 60, 1}));
    seconds += days * 86400;
  } else if (std::count(text.begin(), text.end(), ':') == 2) {
    ASSIGN_OR_RETURN(seconds, Fields(text, text, {3600, 60, 1}));
  } else {
    ASSIGN_OR_RETURN(seconds, Fields(text, text, {60, 1}));
  }
  if (seconds <= 0 || seconds > kMaxSeconds) return BadTime(text);
  return absl::Seconds(seconds);
}

absl::StatusOr<absl::Duration> ParseSeconds(absl::string_view text) {
  int64_t seconds = 0;
  if (ParseDigits(text, &seconds)) return absl::Seconds(seconds);
  absl::Duration duration;
  if (absl::ParseDuration(std::string(text), &duration) && duration >= absl::ZeroDuration() && duration < absl::Seconds(kMaxSeconds))
    return duration;
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no duration; accepted are seconds or 500ms, 90s, 1h30m"));
}

absl::StatusOr<uint64_t> ParseJobId(absl::string_view text) {
  uint64_t id = 0;
  if (absl::SimpleAtoi(text, &id) && id > 0) return id;
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no job id; ids are whole numbers from 1"));
}

absl::StatusOr<std::vector<v1::Dependency>> ParseDependencies(absl::string_view text) {
  std::vector<v1::Dependency> dependencies;
  for (const absl::string_view item : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    std::vector<absl::string_view> parts = absl::StrSplit(item, ':');
    v1::DependencyType type = v1::DEPENDENCY_TYPE_AFTER_OK;
    if (parts[0] == "afternotok")
      type = v1::DEPENDENCY_TYPE_AFTER_NOT_OK;
    else if (parts[0] == "afterany")
      type = v1::DEPENDENCY_TYPE_AFTER_ANY;
    else if (parts[0] == "after")
      type = v1::DEPENDENCY_TYPE_AFTER;
    else if (parts[0] != "afterok" && parts.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", parts[0], "' is no dependency; accepted are afterok, afternotok, afterany, after"));
    }
    if (parts.size() > 1) parts.erase(parts.begin());
    for (const absl::string_view id : parts) {
      v1::Dependency& dependency = dependencies.emplace_back();
      dependency.set_type(type);
      ASSIGN_OR_RETURN(const uint64_t job, ParseJobId(id));
      dependency.set_job_id(job);
    }
  }
  return dependencies;
}

}  // namespace closeknit
