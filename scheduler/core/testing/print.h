// Effects as lines that a person reviews.
#ifndef CLOSEKNIT_SCHEDULER_CORE_TESTING_PRINT_H_
#define CLOSEKNIT_SCHEDULER_CORE_TESTING_PRINT_H_

#include <functional>
#include <string>

#include "scheduler/core/events.h"

namespace closeknit {

// "store job 1: PREPARING attempt 1 on h[1-2]", "send h1: PREPARE 1/1 slot 0 of 2 ...", "reply 1: ...", in the order in which the shell
// carries them out. `agent` gives a session's agent.
std::string Print(const Effects& effects, const std::function<std::string(SessionId)>& agent);
std::string PrintJob(const v1::Job& job);
std::string PrintNode(const v1::Node& node);

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_CORE_TESTING_PRINT_H_
