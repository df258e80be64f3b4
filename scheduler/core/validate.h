// Checks of what users send, as far as they need no state. Every error is kInvalidArgument and names the field from the request's root.
#ifndef CLOSEKNIT_SCHEDULER_CORE_VALIDATE_H_
#define CLOSEKNIT_SCHEDULER_CORE_VALIDATE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "closeknit/v1/jobs.pb.h"
#include "closeknit/v1/types.pb.h"

namespace closeknit {

// Limits of a job, with their units. docs/core.md has the table.
inline constexpr uint32_t kMaxNodes = 50'000;
inline constexpr uint32_t kMaxGpusPerNode = 64;
inline constexpr uint32_t kMaxRanksPerNode = 1'024;  // of jobs without GPUs; with GPUs: one rank a GPU
inline constexpr int32_t kMaxPriority = 1'000'000;
inline constexpr size_t kMaxScriptBytes = 1 << 20;
inline constexpr size_t kMaxCommandBytes = 1 << 20;      // all arguments together
inline constexpr size_t kMaxEnvironmentBytes = 1 << 20;  // all names and values together
inline constexpr size_t kMaxGangBytes = 1 << 30;         // spec times hosts: what one PREPARE of the gang sends
inline constexpr size_t kMaxArrayBytes = 256 << 20;      // spec times tasks: what one submit stores
inline constexpr int kMaxDependencies = 256;
inline constexpr uint32_t kMaxRestarts = 1'000;
inline constexpr uint32_t kDefaultRestarts = 3;
inline constexpr absl::Duration kMaxTimeLimit = absl::Hours(24 * 3650);
inline constexpr absl::Duration kDefaultGracePeriod = absl::Seconds(30);
inline constexpr absl::Duration kMaxGracePeriod = absl::Hours(1);

// All of a submission but what depends on the fabric (tiers, host lists, degrees) and on other jobs.
absl::Status ValidateSubmit(const v1::SubmitJobRequest& request);

// The spec as it is stored: what was left empty has its default, so that agents and readers need none.
v1::JobSpec Normalized(v1::JobSpec spec);

// Whether jobs may not set this variable: Closeknit's own and those of torchrun's contract.
bool IsReservedVariable(absl::string_view name);

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_CORE_VALIDATE_H_
