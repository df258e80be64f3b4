#include "scheduler/core/testing/harness.h"

#include <utility>

#include "proto/base/check.h"

namespace closeknit {

Harness::Harness(const CoreConfig& config) : config_(config) { Restart(); }

Effects Harness::Step(std::vector<Event> events, Crash crash) {
  CHECK(core_ != nullptr) << "restart it first";
  Effects effects = core_->Apply(events, now_);
  if (crash == Crash::kBeforeCommit) {
    Kill();
    return Effects();
  }
  Commit(effects.writes);
  if (crash == Crash::kAfterCommit) {
    Kill();
    return effects;
  }
  LetOut(effects);
  return effects;
}

void Harness::Commit(const std::vector<RecordWrite>& writes) {
  for (const RecordWrite& write : writes) {
    if (write.value.has_value()) {
      tables_[write.table][write.key] = *write.value;
    } else {
      tables_[write.table].erase(write.key);
    }
  }
}

void Harness::LetOut(const Effects& effects) {
  for (const auto& job : effects.jobs) published_jobs_[job->job_id()] = job;
  for (const auto& node : effects.nodes) published_nodes_[node->name()] = node;
  for (const std::string& name : effects.deleted_nodes) published_nodes_.erase(name);
  for (const JobId id : effects.purged_jobs) published_jobs_.erase(id);
  for (const AgentCommand& command : effects.commands) {
    const auto stream = to_agents_.find(command.session);
    if (stream != to_agents_.end()) stream->second.push_back(command.message);
  }
  for (const CloseSession& close : effects.closes) {
    const auto agent = agent_of_.find(close.session);
    if (agent == agent_of_.end()) continue;
    const auto session = session_of_.find(agent->second);
    if (session != session_of_.end() && session->second == close.session) session_of_.erase(session);
    agent_of_.erase(agent);
    to_agents_.erase(close.session);
    to_core_.erase(close.session);
  }
}

void Harness::Kill() {
  core_ = nullptr;
  session_of_.clear();
  agent_of_.clear();
  to_agents_.clear();
  to_core_.clear();
}

StoredState Harness::Stored() const {
  StoredState stored;
  const auto table = [&](Table which) -> const std::map<std::string, std::string>& {
    static const auto* const kEmpty = new std::map<std::string, std::string>();
    const auto found = tables_.find(which);
    return found == tables_.end() ? *kEmpty : found->second;
  };
  for (const auto& [key, value] : table(Table::kMeta)) CHECK(stored.meta.ParseFromString(value));
  for (const auto& [key, value] : table(Table::kFabric)) {
    CHECK(stored.fabric_record.emplace().ParseFromString(value));
    stored.fabric = fabrics_.at(stored.fabric_record->description());
  }
  for (const auto& [key, value] : table(Table::kNodes)) CHECK(stored.nodes.emplace_back().ParseFromString(value));
  for (const auto& [key, value] : table(Table::kJobs)) CHECK(stored.jobs.emplace_back().ParseFromString(value));
  for (const auto& [key, value] : table(Table::kRequests))
    CHECK(stored.requests.emplace_back(key, v1::RequestRecord()).second.ParseFromString(value));
  return stored;
}

Effects Harness::Restart() {
  Kill();
  StoredState stored = Stored();
  stored.meta.set_schema_version(1);
  stored.meta.set_term(stored.meta.term() + 1);
  tables_[Table::kMeta]["meta"] = stored.meta.SerializeAsString();
  Effects effects;
  absl::StatusOr<std::unique_ptr<Core>> core = Core::Restore(std::move(stored), config_, now_, &effects);
  CHECK_OK(core.status());
  core_ = *std::move(core);
  Commit(effects.writes);
  published_jobs_.clear();
  published_nodes_.clear();
  LetOut(effects);
  return effects;
}

Event Harness::Topology(const std::string& description, std::shared_ptr<const Fabric> fabric) {
  for (const Host& host : fabric->hosts()) {
    std::unique_ptr<FakeAgent>& agent = agents_[host.name];
    if (agent == nullptr) agent = std::make_unique<FakeAgent>(host.name, host.gpus);
  }
  fabrics_[description] = fabric;
  ApplyTopology event;
  event.call = 1;
  event.request.set_description(description);
  event.fabric = std::move(fabric);
  return event;
}

void Harness::EditFabric(const std::string& description, std::shared_ptr<const Fabric> fabric) {
  CHECK(core_ == nullptr) << "kill it first";
  fabrics_[description] = std::move(fabric);
  v1::FabricRecord record;
  CHECK(record.ParseFromString(tables_.at(Table::kFabric).at("fabric")));
  record.set_description(description);
  tables_[Table::kFabric]["fabric"] = record.SerializeAsString();
}

Event Harness::Connect(const std::string& name) {
  const SessionId session = next_session_++;
  if (const auto old = session_of_.find(name); old != session_of_.end()) {
    // The agent has given that stream up.
    to_agents_[old->second].clear();
    to_core_[old->second].clear();
  }
  session_of_[name] = session;
  agent_of_[session] = name;
  to_agents_[session].clear();
  to_core_[session].clear();
  return AgentConnected{session, agents_.at(name)->Hello()};
}

Event Harness::Disconnect(const std::string& name, const std::string& why) {
  const SessionId session = session_of_.at(name);
  session_of_.erase(name);
  agent_of_.erase(session);
  to_agents_.erase(session);
  to_core_.erase(session);
  return AgentDisconnected{session, why};
}

bool Harness::Deliver(const std::string& name) {
  const auto session = session_of_.find(name);
  if (session == session_of_.end()) return false;
  std::deque<v1::SchedulerMessage>& stream = to_agents_.at(session->second);
  if (stream.empty()) return false;
  const v1::SchedulerMessage message = std::move(stream.front());
  stream.pop_front();
  for (v1::AgentMessage& answer : agents_.at(name)->Receive(message, now_)) to_core_.at(session->second).push_back(std::move(answer));
  return true;
}

void Harness::Say(const std::string& name, const v1::AgentMessage& message) {
  const auto session = session_of_.find(name);
  if (session != session_of_.end()) to_core_.at(session->second).push_back(message);
}

std::vector<Event> Harness::TakeReports() {
  std::vector<Event> events;
  for (auto& [session, stream] : to_core_) {
    for (v1::AgentMessage& message : stream) events.push_back(AgentReported{session, std::move(message)});
    stream.clear();
  }
  return events;
}

std::vector<Event> Harness::TakeReport(const std::string& name) {
  const auto session = session_of_.find(name);
  if (session == session_of_.end() || to_core_.at(session->second).empty()) return {};
  std::deque<v1::AgentMessage>& stream = to_core_.at(session->second);
  std::vector<Event> events = {AgentReported{session->second, std::move(stream.front())}};
  stream.pop_front();
  return events;
}

bool Harness::HasReports() const {
  for (const auto& [session, stream] : to_core_) {
    if (!stream.empty()) return true;
  }
  return false;
}

void Harness::Settle(const std::function<void(const Effects&)>& on_effects) {
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& [name, agent] : agents_) {
      while (Deliver(name)) moved = true;
    }
    if (!moved && !HasReports()) return;
    const Effects effects = Step(TakeReports());
    if (on_effects) on_effects(effects);
    moved = true;
  }
}

v1::JobRecord Harness::record(JobId job) const {
  v1::JobRecord record;
  CHECK(record.ParseFromString(tables_.at(Table::kJobs).at(JobKey(job))));
  return record;
}

std::vector<v1::Job> Harness::jobs() const {
  std::vector<v1::Job> jobs;
  const auto table = tables_.find(Table::kJobs);
  if (table == tables_.end()) return jobs;
  for (const auto& [key, value] : table->second) {
    v1::JobRecord record;
    CHECK(record.ParseFromString(value));
    jobs.push_back(std::move(*record.mutable_job()));
  }
  return jobs;
}

}  // namespace closeknit
