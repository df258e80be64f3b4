#include "scheduler/commit_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "cluster_model/test_cluster.h"

namespace closeknit {
namespace {

using ::testing::HasSubstr;

// A store whose disk can be made full.
class FailingStore : public Store {
 public:
  absl::Status Commit(absl::Span<const RecordWrite> writes) override {
    if (full) return absl::UnavailableError("disk full");
    ++commits;
    return inner_->Commit(writes);
  }
  absl::Status Scan(Table table, const std::function<bool(absl::string_view, absl::string_view)>& visit) const override {
    if (full) return absl::UnavailableError("disk full");
    return inner_->Scan(table, visit);
  }
  std::atomic<bool> full = false;
  std::atomic<int> commits = 0;

 private:
  std::unique_ptr<Store> inner_ = NewMemoryStore();
};

class RecordingSink : public EffectSink {
 public:
  void LetOut(Effects effects, const Core&, absl::Time) override {
    MutexLock lock(&mutex_);
    for (const auto& job : effects.jobs) jobs_.push_back(job);
  }
  void Restored(Effects, const Core&, const std::optional<v1::FabricRecord>&, absl::Time) override {
    MutexLock lock(&mutex_);
    ++restored_;
    changed_.SignalAll();
  }
  void StoreFailed(const absl::Status&) override { ++failures; }
  void Refuse(SessionId session, const absl::Status&) override { last_refused = session; }
  void Committed(size_t events, size_t, absl::Duration) override {
    MutexLock lock(&mutex_);
    largest_batch_ = std::max(largest_batch_, events);
  }

  void WaitRestored(int times) {
    MutexLock lock(&mutex_);
    while (restored_ < times) changed_.Wait(&mutex_);
  }
  size_t jobs() {
    MutexLock lock(&mutex_);
    return jobs_.size();
  }
  size_t largest_batch() {
    MutexLock lock(&mutex_);
    return largest_batch_;
  }
  std::atomic<int> failures = 0;
  std::atomic<SessionId> last_refused = 0;

 private:
  Mutex mutex_;
  CondVar changed_;
  int restored_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t largest_batch_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<const v1::Job>> jobs_ ABSL_GUARDED_BY(mutex_);
};

// Calls and waits for the answer.
absl::StatusOr<ReplyMessage> Ask(CommitLoop& loop, Event event) {
  Mutex mutex;
  CondVar answered;
  std::optional<absl::StatusOr<ReplyMessage>> answer;
  loop.Call(std::move(event), [&](absl::StatusOr<ReplyMessage> reply) {
    MutexLock lock(&mutex);
    answer = std::move(reply);
    answered.Signal();
  });
  MutexLock lock(&mutex);
  while (!answer.has_value()) answered.Wait(&mutex);
  return *std::move(answer);
}

SubmitJob Submission() {
  SubmitJob submit;
  submit.request.set_user("ada");
  submit.request.mutable_spec()->set_nodes(1);
  submit.request.mutable_spec()->add_command("true");
  return submit;
}

ApplyTopology Topology() {
  ApplyTopology topology;
  topology.request.set_user("ada");
  topology.request.set_description("SwitchName=r1 Nodes=h[1-2]\n");
  topology.fabric = Cluster("1 pods x 1 racks x 2 hosts").shared_fabric();
  return topology;
}

TEST(CommitLoop, AnswersAfterTheCommitAndPublishesBeforeTheAnswer) {
  FailingStore store;
  RecordingSink sink;
  CommitLoop loop(&store, CoreConfig(), &sink);
  ASSERT_TRUE(loop.Start().ok());
  ASSERT_TRUE(Ask(loop, Topology()).ok());
  const int before = store.commits;
  const absl::StatusOr<ReplyMessage> reply = Ask(loop, Submission());
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(std::get<v1::SubmitJobResponse>(*reply).job_id(), 1u);
  EXPECT_GT(store.commits, before);
  EXPECT_GE(sink.jobs(), 1u);
}

TEST(CommitLoop, ManyCallsShareOneCommit) {
  FailingStore store;
  RecordingSink sink;
  CommitLoop loop(&store, CoreConfig(), &sink);
  ASSERT_TRUE(loop.Start().ok());
  ASSERT_TRUE(Ask(loop, Topology()).ok());
  constexpr int kCalls = 5'000;
  Mutex mutex;
  CondVar answered;
  int answers = 0;
  const int before = store.commits;
  for (int i = 0; i < kCalls; ++i) {
    loop.Call(Submission(), [&](absl::StatusOr<ReplyMessage> reply) {
      ASSERT_TRUE(reply.ok());
      MutexLock lock(&mutex);
      ++answers;
      answered.Signal();
    });
  }
  {
    MutexLock lock(&mutex);
    while (answers < kCalls) answered.Wait(&mutex);
  }
  EXPECT_LT(store.commits - before, kCalls / 2);
  EXPECT_GT(sink.largest_batch(), 1u);
}

TEST(CommitLoop, AFullDiskIsAnsweredAndNothingIsForgottenWhenItHasRoomAgain) {
  FailingStore store;
  RecordingSink sink;
  CommitLoop loop(&store, CoreConfig(), &sink);
  ASSERT_TRUE(loop.Start().ok());
  ASSERT_TRUE(Ask(loop, Topology()).ok());
  ASSERT_TRUE(Ask(loop, Submission()).ok());
  store.full = true;
  const absl::Status refused = Ask(loop, Submission()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("disk full"));
  EXPECT_EQ(sink.failures, 1);
  // While there is no core, agents are turned away instead of left without an answer.
  loop.Post(AgentConnected{7, v1::Hello()});
  EXPECT_FALSE(Ask(loop, Submission()).ok());
  EXPECT_EQ(sink.last_refused, 7u);
  store.full = false;
  sink.WaitRestored(2);
  const absl::StatusOr<ReplyMessage> reply = Ask(loop, Submission());
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(std::get<v1::SubmitJobResponse>(*reply).job_id(), 2u) << "the refused jobs left nothing behind";
}

TEST(CommitLoop, AnswersWhatItHasNotTakenWhenItStops) {
  FailingStore store;
  RecordingSink sink;
  CommitLoop loop(&store, CoreConfig(), &sink);
  ASSERT_TRUE(loop.Start().ok());
  loop.Stop();
  EXPECT_EQ(Ask(loop, Submission()).status().code(), absl::StatusCode::kUnavailable);
}

TEST(RestoreCore, RaisesTheTermOnDiskAndKeepsTheClustersId) {
  const std::unique_ptr<Store> store = NewMemoryStore();
  const auto meta = [&] {
    v1::MetaRecord record;
    EXPECT_TRUE(
        store->Scan(Table::kMeta, [&](absl::string_view, absl::string_view value) { return record.ParseFromString(std::string(value)); })
            .ok());
    return record;
  };
  ASSERT_TRUE(RestoreCore(store.get(), CoreConfig(), absl::Now()).ok());
  const v1::MetaRecord first = meta();
  ASSERT_TRUE(RestoreCore(store.get(), CoreConfig(), absl::Now()).ok());
  EXPECT_EQ(first.term(), 1u);
  EXPECT_EQ(meta().term(), 2u);
  EXPECT_EQ(meta().cluster_id(), first.cluster_id());
  EXPECT_EQ(first.schema_version(), kStoreSchemaVersion);
}

TEST(RestoreCore, ARecordThatCannotBeReadIsNamed) {
  const std::unique_ptr<Store> store = NewMemoryStore();
  ASSERT_TRUE(store->Commit({{Table::kJobs, JobKey(7), std::string("\x0a\xff")}}).ok());
  const absl::Status status = RestoreCore(store.get(), CoreConfig(), absl::Now()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("jobs"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("0000000000000007"));
}

}  // namespace
}  // namespace closeknit
