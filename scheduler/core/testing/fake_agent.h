// A host's agent with its supervisors, as far as the scheduler can tell: the agents' side of proto/closeknit/v1/agent.proto, in memory.
//
// What a real agent keeps on disk survives Restart(); what its ranks do, a test says.
#ifndef CLOSEKNIT_SCHEDULER_CORE_TESTING_FAKE_AGENT_H_
#define CLOSEKNIT_SCHEDULER_CORE_TESTING_FAKE_AGENT_H_

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "closeknit/v1/agent.pb.h"
#include "cluster_model/ids.h"

namespace closeknit {

class FakeAgent {
 public:
  FakeAgent(std::string name, int gpus) : name_(std::move(name)), gpus_(gpus) {}

  const std::string& name() const { return name_; }
  v1::Hello Hello() const;

  // What the agent answers, now. `now` is its host's clock.
  std::vector<v1::AgentMessage> Receive(const v1::SchedulerMessage& message, absl::Time now);

  // ---- What happens on the host. Each gives the report that follows from it, if any. ----
  struct Key {
    JobId job = 0;
    AttemptNumber attempt = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  std::optional<v1::AgentMessage> ExitRank(Key key, uint32_t rank, int code, int signal, absl::Time now);
  std::optional<v1::AgentMessage> LoseSupervisor(Key key, absl::Time now);
  // Power cut: nothing that ran is left, nor known.
  void Reboot();
  // The ranks of a stubborn agent ignore SIGTERM and SIGKILL until it is none any more; then they end.
  std::vector<v1::AgentMessage> SetStubborn(bool stubborn, absl::Time now);
  void set_refusal(std::optional<v1::SlotRejected> refusal) { refusal_ = std::move(refusal); }
  void set_gpus(int gpus) { gpus_ = gpus; }

  struct Slot {
    v1::SlotStatus status;
    uint32_t first_rank = 0, ranks = 0;
    bool told_to_stop = false;
    bool running() const { return status.state() == v1::SLOT_STATE_STARTED; }
  };
  const std::map<Key, Slot>& slots() const { return slots_; }
  // Commands that a scheduler which keeps its invariants never gives: a second attempt of a job, a GPU in use.
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  v1::AgentMessage Prepare(const v1::PrepareSlot& prepare);
  std::optional<std::string> Conflict(const v1::PrepareSlot& prepare) const;
  v1::AgentMessage Start(const v1::StartSlot& start, absl::Time now);
  std::optional<v1::AgentMessage> Stop(const v1::StopSlot& stop, absl::Time now);
  static v1::AgentMessage Report(const Slot& slot);
  static void End(Slot* slot, absl::Time now);

  std::string name_;
  int gpus_;
  int boots_ = 1;
  uint64_t highest_term_ = 0;
  uint32_t next_port_ = 20'000;
  bool stubborn_ = false;
  std::optional<v1::SlotRejected> refusal_;
  std::map<JobId, AttemptNumber> highest_attempt_;
  std::map<Key, Slot> slots_;
  std::vector<std::string> violations_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_CORE_TESTING_FAKE_AGENT_H_
