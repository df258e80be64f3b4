// Random events, faults and crashes against the core with fake agents: the invariants hold after every step, hosts and store never disagree
// about what runs, nothing acknowledged is lost, and once faults stop every job ends.
//
// A seed is a reproducer: CLOSEKNIT_SEED=123 core_simulation_test
#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cluster_model/test_cluster.h"
#include "gtest/gtest.h"
#include "proto/base/proto_time.h"
#include "scheduler/core/testing/harness.h"
#include "scheduler/core/testing/print.h"
#include "scheduler/core/wire.h"

namespace closeknit {
namespace {

constexpr int kSteps = 600;

CoreConfig Config() {
  CoreConfig config;
  config.max_ended_jobs = 40;
  return config;
}

class Simulation {
 public:
  explicit Simulation(uint64_t seed) : random_(seed), harness_(Config()) { Step({Topology(0)}); }

  void Run() {
    for (int i = 0; i < kSteps && !testing::Test::HasFatalFailure(); ++i) {
      RandomAction();
      if (i % 50 == 49) CheckRestore();
    }
    Heal();
  }

  uint64_t fingerprint() const { return fingerprint_; }
  // How often each kind of thing has happened.
  const std::map<std::string, int>& seen() const { return seen_; }

 private:
  // ---- Chance ----
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  std::string AnyAgent() { return std::next(harness_.agents().begin(), Below(static_cast<int>(harness_.agents().size())))->first; }

  void RandomAction() {
    const int action = Below(100);
    if (action < 30) {
      harness_.Deliver(AnyAgent());
    } else if (action < 55) {
      Step(harness_.TakeReport(AnyAgent()));
    } else if (action < 62) {
      Step({Submit()});
    } else if (action < 72) {
      ExitSomeRank();
    } else if (action < 76) {
      harness_.Advance(absl::Milliseconds(Below(20'000)));
      Step({});
    } else if (action < 84) {
      const std::string name = AnyAgent();
      if (!harness_.connected(name) || Chance(10)) Step({harness_.Connect(name)});
    } else if (action < 86) {
      const std::string name = AnyAgent();
      if (harness_.connected(name)) Step({harness_.Disconnect(name, "chance")});
      if (!harness_.connected(name) && Chance(30)) harness_.agent(name).Reboot();
    } else if (action < 88) {
      Step({Cancel()});
    } else if (action < 90) {
      RefuseOrAccept();
    } else if (action < 92) {
      for (const v1::AgentMessage& message : StubbornOrNot(&name_)) harness_.Say(name_, message);
    } else if (action < 94) {
      LoseSomeSupervisor();
    } else if (action < 96) {
      Step({Chance(40) ? Drain() : Resume()});
    } else if (action < 98) {
      RepeatReports();
    } else if (action < 99) {
      Step({Topology(Below(3))});
    } else {
      harness_.Kill();
      if (Chance(20)) EditFabric();
      Restart();
    }
  }

  // An operator edits the stored fabric while the scheduler is down: hosts that run something may vanish from it.
  void EditFabric() {
    if (!harness_.tables().contains(Table::kFabric)) return;
    const std::string shape = Shape(Below(3));
    harness_.EditFabric(shape, Cluster(shape).shared_fabric());
  }

  // ---- Steps ----
  void Step(std::vector<Event> events) {
    const int crash = Below(200);
    const Effects effects = harness_.Step(std::move(events), crash == 0   ? Harness::Crash::kBeforeCommit
                                                             : crash == 1 ? Harness::Crash::kAfterCommit
                                                                          : Harness::Crash::kNone);
    if (harness_.core() == nullptr) return Restart();
    Note(effects);
    for (const Reply& reply : effects.replies) {
      if (!reply.result.ok()) continue;
      if (const auto* submitted = std::get_if<v1::SubmitJobResponse>(&*reply.result)) acknowledged_.insert(submitted->job_id());
    }
    Check();
  }

  void Restart() {
    Note(harness_.Restart());
    Check();
  }

  void Note(const Effects& effects) {
    for (const JobId id : effects.purged_jobs) acknowledged_.erase(id);
    for (const Notice& notice : effects.notices) ++seen_[absl::StrCat("notice ", static_cast<int>(notice.kind))];
    for (const auto& job : effects.jobs) {
      if (job->has_verdict()) ++seen_[v1::EndCause_Name(job->verdict().cause())];
    }
    written_off_.insert(effects.deleted_nodes.begin(), effects.deleted_nodes.end());
    const std::string text = Print(effects, [](SessionId session) { return absl::StrCat(session); });
    fingerprint_ = fingerprint_ * 31 + Fingerprint(text);
    if (!text.empty()) trace_.push_back(text);
  }

  // ---- Events ----
  static std::string Shape(int which) {
    static constexpr absl::string_view kShapes[] = {"2 racks x 3 hosts x 4 gpus", "3 racks x 3 hosts x 4 gpus",
                                                    "2 racks x 4 hosts x 4 gpus"};
    return std::string(kShapes[which]);
  }

  Event Topology(int which) {
    const std::string shape = Shape(which);
    return harness_.Topology(shape, Cluster(shape).shared_fabric());
  }

  Event Submit() {
    SubmitJob event;
    event.call = 1;
    event.request.set_user("ada");
    v1::JobSpec& spec = *event.request.mutable_spec();
    spec.add_command("train");
    spec.set_nodes(1 + Below(Chance(30) ? 6 : 2));
    spec.set_gpus_per_node(Below(5));
    spec.set_priority(Below(3));
    *spec.mutable_grace_period() = ToProtoDuration(absl::Seconds(Below(10)));
    if (Chance(50)) {
      spec.mutable_restart()->set_mode(v1::RESTART_MODE_GANG);
      spec.mutable_restart()->set_max_restarts(1 + Below(3));
    }
    if (Chance(20)) *spec.mutable_time_limit() = ToProtoDuration(absl::Seconds(20 + Below(60)));
    if (Chance(15)) spec.set_array(Chance(50) ? "0-3%2" : "1,5");
    if (Chance(20)) event.request.set_request_id(absl::StrCat("r", Below(20)));
    if (Chance(20) && !acknowledged_.empty()) {
      v1::Dependency& dependency = *spec.add_dependencies();
      dependency.set_job_id(AnyJob());
      dependency.set_type(static_cast<v1::DependencyType>(1 + Below(4)));
    }
    return event;
  }

  JobId AnyJob() { return *std::next(acknowledged_.begin(), Below(static_cast<int>(acknowledged_.size()))); }

  Event Cancel() {
    CancelJobs event{1, {}};
    event.request.add_job_ids(acknowledged_.empty() ? 1 : AnyJob());
    return event;
  }

  Event Drain() {
    DrainNodes event{1, {}};
    event.request.add_nodes(AnyAgent());
    event.request.set_reason("chance");
    return event;
  }

  Event Resume() {
    ResumeNodes event{1, {}};
    event.request.add_nodes(AnyAgent());
    return event;
  }

  // ---- What happens on hosts ----
  void ExitSomeRank() {
    const std::string name = AnyAgent();
    FakeAgent& agent = harness_.agent(name);
    for (const auto& [key, slot] : agent.slots()) {
      if (!slot.running() || Chance(30)) continue;
      const uint32_t rank = slot.first_rank + static_cast<uint32_t>(slot.status.exits_size());
      const int how = Below(100);
      const int code = how < 20 ? 1 : 0, signal = how >= 20 && how < 40 ? 11 : 0;
      if (const auto report = agent.ExitRank(key, rank, code, signal, harness_.now()); report.has_value()) harness_.Say(name, *report);
      return;
    }
  }

  void LoseSomeSupervisor() {
    const std::string name = AnyAgent();
    FakeAgent& agent = harness_.agent(name);
    if (agent.slots().empty() || Chance(50)) return;
    if (const auto report = agent.LoseSupervisor(agent.slots().begin()->first, harness_.now()); report.has_value())
      harness_.Say(name, *report);
  }

  void RefuseOrAccept() {
    v1::SlotRejected refusal;
    refusal.set_reason_code("SPOOL_UNWRITABLE");
    refusal.set_message("chance");
    refusal.set_host_fault(Chance(70));
    harness_.agent(AnyAgent()).set_refusal(Chance(30) ? std::optional(refusal) : std::nullopt);
  }

  std::vector<v1::AgentMessage> StubbornOrNot(std::string* name) {
    *name = AnyAgent();
    return harness_.agent(*name).SetStubborn(Chance(30), harness_.now());
  }

  // Reports may arrive twice.
  void RepeatReports() {
    const std::string name = AnyAgent();
    for (const auto& [key, slot] : harness_.agent(name).slots()) {
      v1::AgentMessage message;
      *message.mutable_slot() = slot.status;
      harness_.Say(name, message);
    }
  }

  // ---- What must hold ----
  void Check() {
    ASSERT_TRUE(harness_.core()->CheckInvariants().ok()) << harness_.core()->CheckInvariants() << Trace();
    std::map<JobId, std::set<AttemptNumber>> running;
    for (const auto& [name, agent] : harness_.agents()) {
      ASSERT_TRUE(agent->violations().empty()) << agent->violations()[0] << Trace();
      const bool runs = std::any_of(agent->slots().begin(), agent->slots().end(), [](const auto& slot) { return slot.second.running(); });
      if (!runs) written_off_.erase(name);
      if (written_off_.contains(name)) continue;
      for (const auto& [key, slot] : agent->slots()) {
        if (slot.running()) running[key.job].insert(key.attempt);
      }
    }
    std::set<JobId> stored;
    for (const v1::Job& job : harness_.jobs()) {
      stored.insert(job.job_id());
      const auto found = running.find(job.job_id());
      if (found == running.end()) continue;
      ASSERT_EQ(found->second.size(), 1u) << "two attempts of job " << job.job_id() << " run" << Trace();
      const bool may_run =
          job.state() == v1::JOB_STATE_RUNNING || job.state() == v1::JOB_STATE_RESTARTING || job.state() == v1::JOB_STATE_STOPPING;
      ASSERT_TRUE(may_run) << "ranks run of " << PrintJob(job) << Trace();
      ASSERT_EQ(*found->second.begin(), job.attempt().number()) << PrintJob(job) << Trace();
    }
    for (const JobId id : acknowledged_) ASSERT_TRUE(stored.contains(id)) << "job " << id << " is lost" << Trace();
  }

  // The store alone gives the same jobs.
  void CheckRestore() {
    StoredState stored = harness_.Stored();
    stored.meta.set_term(stored.meta.term() + 1);
    Effects effects;
    const auto restored = Core::Restore(std::move(stored), Config(), harness_.now(), &effects);
    ASSERT_TRUE(restored.ok()) << restored.status() << Trace();
    ASSERT_TRUE((*restored)->CheckInvariants().ok()) << (*restored)->CheckInvariants() << Trace();
    ASSERT_EQ(effects.jobs.size(), harness_.published_jobs().size());
    for (const auto& job : effects.jobs) {
      v1::Job before = *harness_.published_jobs().at(job->job_id()), after = *job;
      for (v1::Job* each : {&before, &after}) {
        each->clear_reason();
        each->clear_reason_code();
        each->clear_version();
      }
      ASSERT_EQ(DeterministicBytes(before), DeterministicBytes(after)) << PrintJob(before) << "\nrestored as\n"
                                                                       << PrintJob(after) << Trace();
    }
  }

  // No more faults: every job comes to its end.
  void Heal() {
    if (testing::Test::HasFatalFailure()) return;
    if (Effects effects = harness_.Step({Topology(1)}); true) Note(effects);
    for (int round = 0; round < 400; ++round) {
      std::vector<Event> events;
      for (const auto& [name, agent] : harness_.agents()) {
        agent->set_refusal(std::nullopt);
        for (const v1::AgentMessage& message : agent->SetStubborn(false, harness_.now())) harness_.Say(name, message);
        if (round == 0) {
          ResumeNodes resume{0, {}};
          resume.request.add_nodes(name);
          events.push_back(resume);
        }
        if (!harness_.connected(name)) events.push_back(harness_.Connect(name));
        for (const auto& [key, slot] : std::map(agent->slots())) {
          if (!slot.running()) continue;
          const uint32_t rank = slot.first_rank + static_cast<uint32_t>(slot.status.exits_size());
          if (const auto report = agent->ExitRank(key, rank, 0, 0, harness_.now()); report.has_value()) harness_.Say(name, *report);
        }
      }
      Note(harness_.Step(std::move(events)));
      harness_.Settle([&](const Effects& effects) { Note(effects); });
      Check();
      if (testing::Test::HasFatalFailure()) return;
      const std::vector<v1::Job> jobs = harness_.jobs();
      if (std::all_of(jobs.begin(), jobs.end(), [](const v1::Job& job) { return job.state() >= v1::JOB_STATE_COMPLETED; }))
        return CheckAllFree();
      harness_.Advance(absl::Seconds(10));
    }
    std::string nodes;
    for (const auto& [name, node] : harness_.published_nodes()) absl::StrAppend(&nodes, PrintNode(*node), "\n");
    for (const v1::Job& job : harness_.jobs()) EXPECT_GE(job.state(), v1::JOB_STATE_COMPLETED) << PrintJob(job) << "\n" << nodes << Trace();
  }

  void CheckAllFree() {
    for (const auto& [name, node] : harness_.published_nodes()) EXPECT_EQ(node->allocations_size(), 0) << PrintNode(*node) << Trace();
    for (const auto& [name, agent] : harness_.agents()) EXPECT_TRUE(agent->slots().empty()) << name << " keeps a slot" << Trace();
  }

  std::string Trace() const {
    std::string text = "\n... the last effects:\n";
    for (size_t i = trace_.size() > 25 ? trace_.size() - 25 : 0; i < trace_.size(); ++i) absl::StrAppend(&text, "--\n", trace_[i]);
    return text;
  }

  std::mt19937_64 random_;
  Harness harness_;
  std::set<JobId> acknowledged_;
  std::set<std::string> written_off_;  // hosts that an operator drained and took out of the fabric, whatever still runs there
  std::vector<std::string> trace_;
  std::map<std::string, int> seen_;
  uint64_t fingerprint_ = 0;
  std::string name_;
};

uint64_t FirstSeed() {
  const char* const text = std::getenv("CLOSEKNIT_SEED");
  uint64_t seed = 0;
  return text != nullptr && absl::SimpleAtoi(text, &seed) ? seed : 1;
}

int Seeds() {
  const char* const text = std::getenv("CLOSEKNIT_SEEDS");
  int seeds = 0;
  if (text != nullptr && absl::SimpleAtoi(text, &seeds)) return seeds;
  return std::getenv("CLOSEKNIT_SEED") != nullptr ? 1 : 100;
}

TEST(Simulation, InvariantsHoldUnderFaultsAndEveryJobEnds) {
  std::map<std::string, int> seen;
  for (int i = 0; i < Seeds(); ++i) {
    const uint64_t seed = FirstSeed() + static_cast<uint64_t>(i);
    SCOPED_TRACE(absl::StrCat("CLOSEKNIT_SEED=", seed));
    Simulation simulation(seed);
    simulation.Run();
    if (HasFailure()) return;
    for (const auto& [what, count] : simulation.seen()) seen[what] += count;
  }
  for (const auto& [what, count] : seen) RecordProperty(what, count);
  if (Seeds() < 100) return;
  // It is worth something only if everything happens.
  for (int kind = 0; kind <= static_cast<int>(Notice::Kind::kRefusedReport); ++kind)
    EXPECT_GT(seen[absl::StrCat("notice ", kind)], 20) << kind;
  for (int cause = v1::END_CAUSE_COMPLETED; cause <= v1::END_CAUSE_DEPENDENCY_NEVER_SATISFIED; ++cause) {
    EXPECT_GT(seen[v1::EndCause_Name(static_cast<v1::EndCause>(cause))], 10) << v1::EndCause_Name(static_cast<v1::EndCause>(cause));
  }
}

TEST(Simulation, TheSameEventsGiveTheSameEffectsBitForBit) {
  Simulation first(FirstSeed()), second(FirstSeed());
  first.Run();
  second.Run();
  EXPECT_EQ(first.fingerprint(), second.fingerprint());
}

}  // namespace
}  // namespace closeknit
