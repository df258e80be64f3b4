// Values of flags, sbatch directives and job files: times, key=value lists, dependencies. Pure; errors (kInvalidArgument) say what is
// accepted.
#ifndef CLOSEKNIT_CLIENT_FLAG_VALUES_H_
#define CLOSEKNIT_CLIENT_FLAG_VALUES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "closeknit/v1/types.pb.h"

namespace closeknit {

// Slurm's forms "minutes", "minutes:seconds", "hours:minutes:seconds", "days-hours", "days-hours:minutes", "days-hours:minutes:seconds",
// "UNLIMITED" (InfiniteDuration); and durations with units: "90s", "1h30m", "500ms".
absl::StatusOr<absl::Duration> ParseTimeLimit(absl::string_view text);

// Durations with units, or a plain number of seconds.
absl::StatusOr<absl::Duration> ParseSeconds(absl::string_view text);

absl::StatusOr<uint32_t> ParseCount(absl::string_view text);

// "tp=8,pp=4": pairs in the order given; keys must not repeat.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseKeyValues(absl::string_view text);

// "1.5e9", "512M", "16GiB": bytes; K, M, G, T are powers of 1000, Ki, Mi, Gi, Ti of 1024.
absl::StatusOr<double> ParseBytes(absl::string_view text);

// --parallelism "tp=8,pp=16,dp=128" (innermost first) and --bytes "pp=537M,dp=18.8G,pp_wrap=1G".
absl::StatusOr<std::vector<v1::ParallelDimension>> ParseParallelism(absl::string_view degrees, absl::string_view bytes);

// "afterok:12:13,afterany:14" as in sbatch; a plain id means afterok.
absl::StatusOr<std::vector<v1::Dependency>> ParseDependencies(absl::string_view text);

// A job id, from 1.
absl::StatusOr<uint64_t> ParseJobId(absl::string_view text);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLIENT_FLAG_VALUES_H_
