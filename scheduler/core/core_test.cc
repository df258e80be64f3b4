// What transcripts do not show well: agents that misbehave, broken stores, large numbers.
#include "scheduler/core/core.h"

#include "absl/strings/str_cat.h"
#include "cluster_model/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/proto_time.h"
#include "scheduler/core/testing/harness.h"
#include "scheduler/core/testing/print.h"

namespace closeknit {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class CoreTest : public testing::Test {
 protected:
  explicit CoreTest(CoreConfig config = {}) : harness_(config) {}

  void Start(const std::string& shape) {
    harness_.Step({harness_.Topology(shape, Cluster(shape).shared_fabric())});
    std::vector<Event> events;
    for (const auto& [name, agent] : harness_.agents()) events.push_back(harness_.Connect(name));
    harness_.Step(std::move(events));
    harness_.Settle();
  }

  static SubmitJob Job(int nodes, int gpus) {
    SubmitJob event{1, {}};
    event.request.set_user("ada");
    event.request.mutable_spec()->set_nodes(nodes);
    event.request.mutable_spec()->set_gpus_per_node(gpus);
    event.request.mutable_spec()->add_command("train");
    return event;
  }

  Effects Submit(int nodes, int gpus) { return harness_.Step({Job(nodes, gpus)}); }

  absl::Status OnlyClose(const Effects& effects) {
    EXPECT_THAT(effects.closes, SizeIs(1));
    return effects.closes.empty() ? absl::OkStatus() : effects.closes[0].status;
  }

  v1::JobState StateOf(JobId job) { return harness_.record(job).job().state(); }

  void FinishAll() {
    for (const auto& [name, agent] : harness_.agents()) {
      for (const auto& [key, slot] : std::map(agent->slots())) {
        for (uint32_t rank = slot.first_rank; rank < slot.first_rank + slot.ranks; ++rank) {
          if (const auto report = agent->ExitRank(key, rank, 0, 0, harness_.now()); report.has_value()) harness_.Say(name, *report);
        }
      }
    }
    harness_.Settle();
  }

  Harness harness_;
};

// ---- Agents ----

TEST_F(CoreTest, AHostThatTheFabricDoesNotHaveIsToldSo) {
  Start("1 racks x 2 hosts x 2 gpus");
  AgentConnected stranger{1'000, {}};
  stranger.hello.set_protocol_version(1);
  stranger.hello.set_node("h9");
  const absl::Status status = OnlyClose(harness_.Step({stranger}));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("h9"));
}

TEST_F(CoreTest, AnotherProtocolAndALaterTermAreRefused) {
  Start("1 racks x 2 hosts x 2 gpus");
  AgentConnected agent{1'000, harness_.agent("h1").Hello()};
  agent.hello.set_protocol_version(2);
  EXPECT_EQ(OnlyClose(harness_.Step({agent})).code(), absl::StatusCode::kFailedPrecondition);
  agent = {1'001, harness_.agent("h1").Hello()};
  agent.hello.set_highest_term(99);
  EXPECT_THAT(std::string(OnlyClose(harness_.Step({agent})).message()), HasSubstr("99"));
  EXPECT_EQ(harness_.published_nodes().at("h1")->state(), v1::NODE_STATE_IDLE) << "the agent that was connected stays";
}

TEST_F(CoreTest, ASecondHelloEndsTheStream) {
  Start("1 racks x 1 hosts x 2 gpus");
  v1::AgentMessage again;
  *again.mutable_hello() = harness_.agent("h1").Hello();
  harness_.Say("h1", again);
  EXPECT_EQ(OnlyClose(harness_.Step(harness_.TakeReports())).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(harness_.published_nodes().at("h1")->state(), v1::NODE_STATE_DOWN);
}

TEST_F(CoreTest, ReportsOfStreamsThatWereClosedAreIgnored) {
  Start("1 racks x 1 hosts x 2 gpus");
  Submit(1, 2);
  harness_.Settle();
  v1::AgentMessage lost;
  *lost.mutable_slot() = harness_.agent("h1").slots().begin()->second.status;
  lost.mutable_slot()->set_state(v1::SLOT_STATE_ENDED);
  lost.mutable_slot()->set_supervisor_lost(true);
  const Effects effects = harness_.Step({AgentReported{77, lost}});
  EXPECT_THAT(effects.writes, IsEmpty());
  EXPECT_EQ(StateOf(1), v1::JOB_STATE_RUNNING);
}

TEST_F(CoreTest, AStraySlotIsStoppedHoldsItsGpusMeanwhileAndIsReleased) {
  Start("1 racks x 1 hosts x 2 gpus");
  // As if the store had been set back: a slot of a job that this scheduler never heard of.
  harness_.Step({harness_.Disconnect("h1", "gone")});
  AgentConnected back{500, harness_.agent("h1").Hello()};
  v1::SlotStatus& stray = *back.hello.add_slots();
  stray.mutable_id()->set_job_id(42);
  stray.mutable_id()->set_attempt(3);
  stray.set_state(v1::SLOT_STATE_STARTED);
  stray.add_gpus(1);
  Effects effects = harness_.Step({back});
  EXPECT_TRUE(std::any_of(effects.commands.begin(), effects.commands.end(), [](const AgentCommand& c) { return c.message.has_stop(); }));
  Submit(1, 2);
  EXPECT_EQ(StateOf(1), v1::JOB_STATE_PENDING) << "GPU 1 is in use";
  v1::AgentMessage ended;
  *ended.mutable_slot() = stray;
  ended.mutable_slot()->set_state(v1::SLOT_STATE_ENDED);
  effects = harness_.Step({AgentReported{500, ended}});
  EXPECT_TRUE(std::any_of(effects.commands.begin(), effects.commands.end(), [](const AgentCommand& c) { return c.message.has_release(); }));
  EXPECT_EQ(StateOf(1), v1::JOB_STATE_PREPARING);
}

TEST_F(CoreTest, PreparedWithoutAPortIsAFailedPrepare) {
  Start("1 racks x 2 hosts x 2 gpus");
  Submit(1, 2);
  v1::AgentMessage prepared;
  v1::SlotStatus& status = *prepared.mutable_slot();
  status.mutable_id()->set_job_id(1);
  status.mutable_id()->set_attempt(1);
  status.set_state(v1::SLOT_STATE_PREPARED);
  harness_.Say(harness_.record(1).job().attempt().placement().hosts(0), prepared);
  harness_.Step(harness_.TakeReports());
  EXPECT_EQ(StateOf(1), v1::JOB_STATE_PREPARING);
  EXPECT_THAT(harness_.record(1).avoid_nodes(), SizeIs(1));
}

TEST_F(CoreTest, TheVerdictIsTheRankThatFailedFirstByTime) {
  Start("1 racks x 2 hosts x 2 gpus");
  Submit(2, 2);
  harness_.Settle();
  const auto hosts = v1::JobRecord(harness_.record(1)).job().attempt().placement().hosts();
  // Rank 2 dies; rank 0 fails of it a moment later, and is heard of first.
  harness_.Advance(absl::Seconds(10));
  const auto first = harness_.agent(hosts[1]).ExitRank({1, 1}, 2, 0, 9, harness_.now());
  harness_.Advance(absl::Milliseconds(20));
  harness_.Say(hosts[0], *harness_.agent(hosts[0]).ExitRank({1, 1}, 0, 1, 0, harness_.now()));
  harness_.Step(harness_.TakeReports());
  EXPECT_EQ(harness_.record(1).job().verdict().rank(), 0);
  harness_.Say(hosts[1], *first);
  harness_.Step(harness_.TakeReports());
  harness_.Settle();
  const v1::Job job = harness_.record(1).job();
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.verdict().rank(), 2) << PrintJob(job);
  EXPECT_EQ(job.verdict().signal(), 9);
  EXPECT_EQ(job.verdict().node(), hosts[1]);
}

TEST_F(CoreTest, RanksStoppedByTheirHostAreNoSuccess) {
  Start("1 racks x 1 hosts x 2 gpus");
  Submit(1, 2);
  harness_.Settle();
  // Somebody on the host stops the slot; the scheduler has not told it to.
  v1::SchedulerMessage stop;
  stop.mutable_stop()->mutable_id()->set_job_id(1);
  stop.mutable_stop()->mutable_id()->set_attempt(1);
  for (const v1::AgentMessage& message : harness_.agent("h1").Receive(stop, harness_.now())) harness_.Say("h1", message);
  harness_.Settle();
  EXPECT_EQ(StateOf(1), v1::JOB_STATE_FAILED);
  EXPECT_EQ(harness_.record(1).job().verdict().signal(), 15);
}

// ---- Limits ----

class PurgeTest : public CoreTest {
 protected:
  static CoreConfig Config() {
    CoreConfig config;
    config.max_ended_jobs = 3;
    return config;
  }
  PurgeTest() : CoreTest(Config()) {}
};

TEST_F(PurgeTest, TheOldestEndedJobsAreForgottenWithTheirRequests) {
  Start("1 racks x 1 hosts x 2 gpus");
  for (int i = 1; i <= 5; ++i) {
    SubmitJob event = Job(1, 2);
    event.request.set_request_id(absl::StrCat("r", i));
    harness_.Step({event});
    harness_.Settle();
    FinishAll();
  }
  harness_.Step({});
  EXPECT_THAT(harness_.jobs(), SizeIs(3));
  EXPECT_EQ(harness_.jobs()[0].job_id(), 3u);
  EXPECT_THAT(harness_.tables().at(Table::kRequests), SizeIs(3));
  EXPECT_THAT(harness_.published_jobs(), SizeIs(3));
  // A restart forgets in the same order.
  harness_.Restart();
  SubmitJob again = Job(1, 2);
  again.request.set_request_id("r3");
  EXPECT_THAT(Print(harness_.Step({again}), [](SessionId) { return ""; }), HasSubstr("reply: job 3 "));
  again.request.set_request_id("r1");
  EXPECT_THAT(Print(harness_.Step({again}), [](SessionId) { return ""; }), HasSubstr("reply: job 6 "));
}

TEST_F(PurgeTest, AnArrayIsKeptWholeWhileATaskOfItLives) {
  Start("1 racks x 8 hosts x 2 gpus");
  SubmitJob array = Job(1, 2);
  array.request.mutable_spec()->set_array("0-5");
  harness_.Step({array});
  harness_.Settle();
  for (const auto& [name, agent] : harness_.agents()) {
    for (const auto& [key, slot] : std::map(agent->slots())) {
      if (key.job == 6) continue;
      for (uint32_t rank = 0; rank < 2; ++rank) harness_.Say(name, *agent->ExitRank(key, rank, 0, 0, harness_.now()));
    }
  }
  harness_.Settle();
  harness_.Step({});
  EXPECT_THAT(harness_.jobs(), SizeIs(6));
  FinishAll();
  harness_.Step({});
  EXPECT_THAT(harness_.jobs(), SizeIs(3));
}

TEST_F(CoreTest, AnArrayMayNotStoreMoreThanItsShare) {
  Start("1 racks x 1 hosts x 2 gpus");
  SubmitJob array = Job(1, 2);
  array.request.mutable_spec()->clear_command();
  array.request.mutable_spec()->set_script("#!/bin/sh\n" + std::string(1'000'000, 'x'));
  array.request.mutable_spec()->set_array("0-9999");
  const Effects effects = harness_.Step({array});
  ASSERT_THAT(effects.replies, SizeIs(1));
  EXPECT_THAT(effects.replies[0].result.status().ToString(), HasSubstr("spec.array"));
  EXPECT_THAT(effects.writes, IsEmpty());
}

// ---- Large numbers ----

TEST_F(CoreTest, JobsBehindABlockedHeadAreNotVisited) {
  Start("2 racks x 4 hosts x 2 gpus");
  Submit(8, 2);
  harness_.Settle();
  std::vector<Event> events;
  for (int i = 0; i < 10'000; ++i) events.push_back(Job(1 + i % 8, 2));
  harness_.Step(std::move(events));
  EXPECT_EQ(harness_.core()->QueuePosition(10'001), 10'000);
  // A host's coming and going touches the head's reason at most.
  EXPECT_LE(harness_.Step({harness_.Disconnect("h1", "gone")}).writes.size(), 20u);
  EXPECT_LE(harness_.Step({harness_.Connect("h1")}).writes.size(), 20u);
  EXPECT_TRUE(harness_.core()->CheckInvariants().ok());
}

TEST_F(CoreTest, AChainOfDependentsEndsWithoutRecursion) {
  Start("1 racks x 1 hosts x 2 gpus");
  SubmitJob held = Job(1, 2);
  held.request.mutable_spec()->set_hold(true);
  std::vector<Event> events = {held};
  for (JobId id = 2; id <= 50'000; ++id) {
    SubmitJob next = Job(1, 2);
    next.call = 0;
    v1::Dependency& dependency = *next.request.mutable_spec()->add_dependencies();
    dependency.set_job_id(id - 1);
    dependency.set_type(v1::DEPENDENCY_TYPE_AFTER_OK);
    events.push_back(next);
  }
  harness_.Step(std::move(events));
  CancelJobs cancel{1, {}};
  cancel.request.add_job_ids(1);
  harness_.Step({cancel});
  EXPECT_EQ(StateOf(50'000), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(harness_.record(50'000).job().verdict().cause(), v1::END_CAUSE_DEPENDENCY_NEVER_SATISFIED);
}

// ---- Broken stores ----

class BrokenStoreTest : public CoreTest {
 protected:
  absl::Status RestoreWith(const std::function<void(StoredState*)>& spoil) {
    if (harness_.agents().empty()) {
      Start("1 racks x 2 hosts x 2 gpus");
      Submit(1, 2);
      Submit(1, 2);
      harness_.Settle();
    }
    StoredState stored = harness_.Stored();
    spoil(&stored);
    Effects effects;
    return Core::Restore(std::move(stored), CoreConfig(), harness_.now(), &effects).status();
  }
};

TEST_F(BrokenStoreTest, ASoundStoreIsRestored) {
  EXPECT_TRUE(RestoreWith([](StoredState*) {}).ok());
}

TEST_F(BrokenStoreTest, TwoLiveJobsOnOneGpu) {
  const absl::Status status = RestoreWith([](StoredState* stored) {
    *stored->jobs[1].mutable_job()->mutable_attempt()->mutable_placement()->mutable_hosts() =
        stored->jobs[0].job().attempt().placement().hosts();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("job 2"));
}

TEST_F(BrokenStoreTest, AJobTwiceOrFromTheFutureOrLiveWithoutHosts) {
  const auto spoils = std::vector<std::function<void(StoredState*)>>{
      [](StoredState* stored) { stored->jobs.push_back(stored->jobs[0]); },
      [](StoredState* stored) { stored->meta.set_next_job_id(2); },
      [](StoredState* stored) { stored->jobs[0].mutable_job()->mutable_attempt()->clear_placement(); },
      [](StoredState* stored) { stored->jobs[0].set_next_attempt(1); },
  };
  for (const auto& spoil : spoils) EXPECT_EQ(RestoreWith(spoil).code(), absl::StatusCode::kDataLoss);
}

TEST_F(BrokenStoreTest, ANewerSchemaIsRefused) {
  EXPECT_EQ(RestoreWith([](StoredState* stored) { stored->meta.set_schema_version(2); }).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace closeknit
