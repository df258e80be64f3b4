// A whole scheduler around the core, in memory: a store that keeps what was committed, a clock that a test moves, agents with a stream
// each.
//
// It keeps the shell's order: Apply, commit, let effects out. Messages lie in the streams until a test delivers them, so that it can also
// lose them with the stream, or crash the scheduler between commit and delivery.
#ifndef CLOSEKNIT_SCHEDULER_CORE_TESTING_HARNESS_H_
#define CLOSEKNIT_SCHEDULER_CORE_TESTING_HARNESS_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/core/core.h"
#include "scheduler/core/testing/fake_agent.h"

namespace closeknit {

// The store's tables; a copy is what a crash leaves behind.
using MemoryTables = std::map<Table, std::map<std::string, std::string>>;

class Harness {
 public:
  explicit Harness(const CoreConfig& config);

  // What a crash in Step leaves of it.
  enum class Crash { kNone, kBeforeCommit, kAfterCommit };

  // Applies the events and carries the effects out; returns them. After a crash there is no core until Restart.
  Effects Step(std::vector<Event> events, Crash crash = Crash::kNone);
  void Advance(absl::Duration duration) { now_ += duration; }
  absl::Time now() const { return now_; }
  Core* core() { return core_.get(); }

  // kill -9: streams break, effects that are not out are lost. Then a new core from the store, with the next term.
  void Kill();
  Effects Restart();

  // Applies a fabric under any name. Agents for new hosts are made, not connected.
  Event Topology(const std::string& description, std::shared_ptr<const Fabric> fabric);

  // An operator's hand in the store while the scheduler is down.
  void EditFabric(const std::string& description, std::shared_ptr<const Fabric> fabric);

  FakeAgent& agent(const std::string& name) { return *agents_.at(name); }
  const std::map<std::string, std::unique_ptr<FakeAgent>>& agents() const { return agents_; }
  bool connected(const std::string& name) const { return session_of_.contains(name); }
  Event Connect(const std::string& name);                             // an older stream of that agent stays until the core closes it
  Event Disconnect(const std::string& name, const std::string& why);  // messages in flight are lost
  // The agent takes its next command. Its answers are put on its stream. False: there is none.
  bool Deliver(const std::string& name);
  // The agent says something by itself; lost where it is not connected.
  void Say(const std::string& name, const v1::AgentMessage& message);
  // Takes what agents have said and not reported yet, as events.
  std::vector<Event> TakeReports();
  std::vector<Event> TakeReport(const std::string& name);  // the next one of one agent
  bool HasReports() const;
  // Delivers and steps until nothing moves.
  void Settle(const std::function<void(const Effects&)>& on_effects = nullptr);

  // ---- What was committed ----
  const MemoryTables& tables() const { return tables_; }
  v1::JobRecord record(JobId job) const;
  std::vector<v1::Job> jobs() const;  // committed, in id order
  StoredState Stored() const;

  // Readers' view, kept from the effects.
  const std::map<JobId, std::shared_ptr<const v1::Job>>& published_jobs() const { return published_jobs_; }
  const std::map<std::string, std::shared_ptr<const v1::Node>>& published_nodes() const { return published_nodes_; }

 private:
  void Commit(const std::vector<RecordWrite>& writes);
  void LetOut(const Effects& effects);

  const CoreConfig config_;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000'000);
  std::unique_ptr<Core> core_;
  MemoryTables tables_;
  std::map<std::string, std::shared_ptr<const Fabric>> fabrics_;  // by description
  std::map<std::string, std::unique_ptr<FakeAgent>> agents_;
  SessionId next_session_ = 1;
  std::map<std::string, SessionId> session_of_;
  std::map<SessionId, std::string> agent_of_;
  std::map<SessionId, std::deque<v1::SchedulerMessage>> to_agents_;
  std::map<SessionId, std::deque<v1::AgentMessage>> to_core_;
  std::map<JobId, std::shared_ptr<const v1::Job>> published_jobs_;
  std::map<std::string, std::shared_ptr<const v1::Node>> published_nodes_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_CORE_TESTING_HARNESS_H_
