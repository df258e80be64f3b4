// Values of flags, sbatch directives and job files: times, dependencies, and those of proto/base/text_values.h. Pure; errors
// (kInvalidArgument) say what is accepted.
#ifndef CLOSEKNIT_CLIENT_FLAG_VALUES_H_
#define CLOSEKNIT_CLIENT_FLAG_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "closeknit/v1/types.pb.h"
#include "proto/base/text_values.h"

namespace closeknit {

// Slurm's forms "minutes", "minutes:seconds", "hours:minutes:seconds", "days-hours", "days-hours:minutes", "days-hours:minutes:seconds",
// "UNLIMITED" (InfiniteDuration); and durations with units: "90s", "1h30m", "500ms".
absl::StatusOr<absl::Duration> ParseTimeLimit(absl::string_view text);

// Durations with units, or a plain number of seconds.
absl::StatusOr<absl::Duration> ParseSeconds(absl::string_view text);

// "afterok:12:13,afterany:14" as in sbatch; a plain id means afterok.
absl::StatusOr<std::vector<v1::Dependency>> ParseDependencies(absl::string_view text);

// A job id, from 1.
absl::StatusOr<uint64_t> ParseJobId(absl::string_view text);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLIENT_FLAG_VALUES_H_
