// From what agents report of a slot's ranks to the verdict of its gang. Pure functions.
#ifndef CLOSEKNIT_SCHEDULER_CORE_VERDICT_H_
#define CLOSEKNIT_SCHEDULER_CORE_VERDICT_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "closeknit/v1/agent.pb.h"
#include "closeknit/v1/types.pb.h"

namespace closeknit {

// Whether ranks that were told to stop count as failed. They do where nobody of the scheduler had told them: something on the host did.
enum class CountStopped { kNo, kYes };

// The rank of the slot that failed first by its host's clock; nullopt: none failed. Ranks that failed by themselves come before ranks that
// were stopped.
std::optional<v1::ExitVerdict> FirstFailure(const v1::SlotStatus& status, const std::string& node, CountStopped count_stopped);

v1::ExitVerdict SupervisorLost(const v1::SlotStatus& status, const std::string& node, absl::Time now);

// Whether `failure` of a rank explains the gang's end better than the verdict at hand: that one is a later rank's failure.
bool IsEarlierFailure(const v1::ExitVerdict& failure, const v1::ExitVerdict& verdict);

v1::JobState EndState(v1::EndCause cause);

// "SIGSEGV", "signal 42".
std::string SignalName(int signal);

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_CORE_VERDICT_H_
