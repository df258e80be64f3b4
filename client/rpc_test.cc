#include <sstream>

#include "client/commands.h"
#include "client/fake_scheduler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/errors.h"

namespace closeknit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() : connection_(scheduler_.target(), absl::Seconds(10)) {
    session_.connection = &connection_;
    session_.output.out = &out_;
    session_.output.err = &err_;
  }

  static SubmitOptions Command(std::vector<std::string> words) {
    SubmitOptions options;
    options.command = std::move(words);
    return options;
  }

  static v1::WatchJobsResponse Update(v1::JobState state, const v1::ExitVerdict& verdict = {}) {
    v1::WatchJobsResponse update;
    update.mutable_job()->set_job_id(7);
    update.mutable_job()->set_state(state);
    update.mutable_job()->mutable_spec()->set_nodes(2);
    update.mutable_job()->mutable_attempt()->set_number(1);
    *update.mutable_job()->mutable_verdict() = verdict;
    return update;
  }

  static v1::StreamLogsResponse Chunk(uint32_t rank, uint64_t offset, const std::string& data) {
    v1::StreamLogsResponse chunk;
    chunk.set_attempt(1);
    chunk.set_rank(rank);
    chunk.set_offset(offset);
    chunk.set_data(data);
    return chunk;
  }

  FakeScheduler scheduler_;
  Connection connection_;
  std::ostringstream out_, err_;
  Session session_;
};

TEST_F(ClientTest, ARetriedSubmitKeepsItsRequestId) {
  scheduler_.submit_failures = {{grpc::StatusCode::UNAVAILABLE, "starting"}, {grpc::StatusCode::UNAVAILABLE, "starting"}};
  EXPECT_EQ(Submit(session_, Command({"true"})), kOk);
  EXPECT_EQ(out_.str(), "Submitted job 7\n");
  const auto submitted = scheduler_.submitted();
  ASSERT_EQ(submitted.size(), 3u);
  EXPECT_NE(submitted[0].request_id(), "");
  EXPECT_EQ(submitted[0].request_id(), submitted[2].request_id());
  EXPECT_EQ(submitted[0].spec().nodes(), 1u);
  EXPECT_EQ(submitted[0].spec().working_directory()[0], '/');
  EXPECT_NE(submitted[0].user(), "");
}

TEST_F(ClientTest, ErrorsPrintTheFieldAndExitWithTwo) {
  const google::rpc::Status details = ToRpcStatus(InvalidField("spec.nodes", "0 is out of range; accepted are 1..50000"));
  scheduler_.submit_failures = {{grpc::StatusCode::INVALID_ARGUMENT, details.message(), details.SerializeAsString()}};
  EXPECT_EQ(Submit(session_, Command({"true"})), kBadInput);
  EXPECT_EQ(err_.str(), "knit: error: spec.nodes: 0 is out of range; accepted are 1..50000\n");
}

TEST_F(ClientTest, UnreachableSchedulerSaysWhichAndWhatToDo) {
  Connection nowhere("127.0.0.1:1", absl::Seconds(3));
  session_.connection = &nowhere;
  EXPECT_EQ(ShowJob(session_, "7"), kUnreachable);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("KNIT_SCHEDULER")));
}

TEST_F(ClientTest, QueueReadsEveryPage) {
  for (uint64_t id = 1; id <= 5; ++id) {
    v1::Job& job = scheduler_.jobs.emplace_back();
    job.set_job_id(id);
    job.set_state(v1::JOB_STATE_PENDING);
    job.set_reason_code("Priority");
    job.mutable_spec()->set_name("j");
  }
  EXPECT_EQ(Queue(session_, {}), kOk);
  const std::string text = out_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6);
  EXPECT_THAT(text, HasSubstr("NODELIST(REASON)"));
  EXPECT_THAT(text, HasSubstr("(Priority)"));
}

TEST_F(ClientTest, UnknownJobIsFour) {
  EXPECT_EQ(ShowJob(session_, "99"), kNotFound);
  EXPECT_EQ(ShowJob(session_, "x"), kBadInput);
  EXPECT_EQ(Cancel(session_, {"-3"}), kBadInput);
}

TEST_F(ClientTest, RunExitsAsTheJobDoes) {
  v1::ExitVerdict exit;
  exit.set_cause(v1::END_CAUSE_RANK_EXIT);
  exit.set_exit_code(7);
  v1::ExitVerdict signal;
  signal.set_cause(v1::END_CAUSE_RANK_SIGNAL);
  signal.set_signal(9);
  const std::vector<std::pair<v1::WatchJobsResponse, int>> cases = {
      {Update(v1::JOB_STATE_COMPLETED), 0},         {Update(v1::JOB_STATE_FAILED, exit), 7},
      {Update(v1::JOB_STATE_FAILED, signal), 137},  {Update(v1::JOB_STATE_CANCELLED), kInterrupted},
      {Update(v1::JOB_STATE_TIMED_OUT), kTimedOut},
  };
  for (const auto& [end, code] : cases) {
    scheduler_.updates = {Update(v1::JOB_STATE_PENDING), end};
    EXPECT_EQ(closeknit::Run(session_, Command({"true"})), code);
  }
}

TEST_F(ClientTest, RunTakesUpABrokenLogStreamWithoutRepeatingALine) {
  scheduler_.updates = {Update(v1::JOB_STATE_RUNNING), Update(v1::JOB_STATE_COMPLETED)};
  scheduler_.logs = {{Chunk(0, 0, "one\ntwo\n"), Chunk(1, 0, "ein")}, {Chunk(0, 0, "one\ntwo\nthree\n"), Chunk(1, 0, "eins\n")}};
  EXPECT_EQ(closeknit::Run(session_, Command({"true"})), kOk) << err_.str();
  EXPECT_EQ(out_.str(), "rank 0: one\nrank 0: two\nrank 0: three\nrank 1: eins\n");
}

TEST_F(ClientTest, JsonHasTheProtosNames) {
  v1::Job& job = scheduler_.jobs.emplace_back();
  job.set_job_id(7);
  job.set_state(v1::JOB_STATE_RUNNING);
  session_.output.format = OutputFormat::kJson;
  EXPECT_EQ(ShowJob(session_, "7"), kOk);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("\"job_id\": \"7\""), HasSubstr("\"state\": \"JOB_STATE_RUNNING\"")));
  out_.str("");
  session_.output.format = OutputFormat::kYaml;
  EXPECT_EQ(ShowJob(session_, "7"), kOk);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("state: JOB_STATE_RUNNING\n"), Not(HasSubstr("{\n"))));
}

TEST_F(ClientTest, AWrongStateIsAnsweredWithTheNearest) {
  QueueOptions options;
  options.states = "runing";
  EXPECT_EQ(Queue(session_, options), kBadInput);
  EXPECT_THAT(err_.str(), HasSubstr("did you mean 'running'?"));
}

}  // namespace
}  // namespace closeknit
