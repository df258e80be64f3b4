// The daemon over real gRPC: what clients and agents see of it.
#include "scheduler/daemon.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "scheduler/testing/daemon_under_test.h"
#include "scheduler/testing/simulated_fleet.h"

namespace closeknit {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kPatience = absl::Seconds(20);

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "closeknit-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

SimulatedFleet::Options Fleet(const DaemonUnderTest& daemon, int hosts, int gpus) {
  SimulatedFleet::Options options;
  options.target = daemon.target();
  options.gpus = gpus;
  for (int i = 1; i <= hosts; ++i) options.hosts.push_back(absl::StrCat("h", i));
  return options;
}

TEST(Daemon, RunsAGangToItsEndAndShowsItsLogs) {
  DaemonUnderTest daemon;
  daemon.Apply(DaemonUnderTest::Description(2, 2, 2));
  SimulatedFleet fleet(Fleet(daemon, 4, 2));
  ASSERT_TRUE(fleet.WaitWelcomed(kPatience));
  const uint64_t id = daemon.Submit(daemon.Spec(4, 2));
  const v1::Job running = daemon.WaitState(id, v1::JOB_STATE_RUNNING);
  EXPECT_EQ(running.attempt().placement().hosts_size(), 4);
  EXPECT_EQ(daemon.WaitNode("h1", v1::NODE_STATE_ALLOCATED).allocations(0).job_id(), id);
  ASSERT_TRUE(fleet.WaitStarted(4, kPatience));
  fleet.ExitAll(0);
  EXPECT_EQ(daemon.WaitState(id, v1::JOB_STATE_COMPLETED).verdict().cause(), v1::END_CAUSE_COMPLETED);

  grpc::ClientContext context;
  v1::StreamLogsRequest request;
  request.set_job_id(id);
  const auto stream = daemon.logs->StreamLogs(&context, request);
  std::map<uint32_t, std::string> text;
  for (v1::StreamLogsResponse chunk; stream->Read(&chunk);) text[chunk.rank()] += chunk.data();
  EXPECT_TRUE(stream->Finish().ok());
  ASSERT_EQ(text.size(), 8u);
  EXPECT_EQ(text[5], "rank 5 of attempt 1\n");
}

TEST(Daemon, AFailedRankIsInTheVerdictAndFollowedLogsGoOnIntoTheNextAttempt) {
  DaemonUnderTest daemon;
  daemon.Apply(DaemonUnderTest::Description(1, 2, 1));
  SimulatedFleet fleet(Fleet(daemon, 2, 1));
  ASSERT_TRUE(fleet.WaitWelcomed(kPatience));
  v1::JobSpec spec = daemon.Spec(2, 1);
  spec.mutable_restart()->set_mode(v1::RESTART_MODE_GANG);
  const uint64_t id = daemon.Submit(spec);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  v1::StreamLogsRequest request;
  request.set_job_id(id);
  request.set_follow(true);
  const auto stream = daemon.logs->StreamLogs(&context, request);
  const v1::Job running = daemon.WaitFor(id, [&](const v1::Job& job) { return job.state() == v1::JOB_STATE_RUNNING; });
  ASSERT_TRUE(fleet.WaitStarted(2, kPatience));
  fleet.ExitRank(running.attempt().placement().hosts(1), {id, 1}, 1, 3);
  const v1::Job again =
      daemon.WaitFor(id, [](const v1::Job& job) { return job.attempt().number() == 2 && job.state() == v1::JOB_STATE_RUNNING; });
  EXPECT_EQ(again.past_attempts(0).verdict().exit_code(), 3);
  EXPECT_EQ(again.past_attempts(0).verdict().rank(), 1);
  ASSERT_TRUE(fleet.WaitStarted(2, kPatience));
  fleet.ExitAll(0);
  std::set<std::string> lines;
  for (v1::StreamLogsResponse chunk; stream->Read(&chunk);) lines.insert(chunk.data());
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_THAT(
      lines, ::testing::IsSupersetOf({"rank 0 of attempt 1\n", "rank 1 of attempt 1\n", "rank 0 of attempt 2\n", "rank 1 of attempt 2\n"}));
}

TEST(Daemon, KeepsEveryAcknowledgedJobAndRaisesItsTermOverARestart) {
  TemporaryDirectory directory;
  std::vector<uint64_t> ids;
  {
    DaemonUnderTest daemon(*OpenRocksStore(directory.path()));
    daemon.Apply(DaemonUnderTest::Description(1, 2, 2));
    for (int i = 0; i < 20; ++i) ids.push_back(daemon.Submit(daemon.Spec(2, 2)));
  }
  DaemonUnderTest daemon(*OpenRocksStore(directory.path()));
  for (const uint64_t id : ids) EXPECT_EQ(daemon.Job(id).state(), v1::JOB_STATE_PENDING);
  SimulatedFleet::Options options = Fleet(daemon, 2, 2);
  options.ranks_end_at_once = true;
  SimulatedFleet fleet(options);
  EXPECT_EQ(daemon.WaitState(ids.back(), v1::JOB_STATE_COMPLETED).attempt().number(), 1u);
}

TEST(Daemon, ASilentAgentsHostIsDownAndItsWorkIsNotGivenAway) {
  DaemonOptions options;
  options.agent_timeout = absl::Milliseconds(600);
  DaemonUnderTest daemon(NewMemoryStore(), options);
  daemon.Apply(DaemonUnderTest::Description(1, 1, 2));
  SimulatedFleet fleet(Fleet(daemon, 1, 2));
  ASSERT_TRUE(fleet.WaitWelcomed(kPatience));
  const uint64_t id = daemon.Submit(daemon.Spec(1, 2));
  daemon.WaitState(id, v1::JOB_STATE_RUNNING);
  fleet.Silence("h1");
  const v1::Node node = daemon.WaitNode("h1", v1::NODE_STATE_DOWN);
  EXPECT_THAT(node.reason(), HasSubstr("silent for 600ms"));
  EXPECT_EQ(node.allocations_size(), 1);
  EXPECT_EQ(daemon.Job(id).state(), v1::JOB_STATE_RUNNING);
}

TEST(Daemon, TheSameRequestIdIsTheSameJob) {
  DaemonUnderTest daemon;
  daemon.Apply(DaemonUnderTest::Description(1, 2, 2));
  std::set<uint64_t> ids;
  for (int i = 0; i < 5; ++i) {
    grpc::ClientContext context;
    v1::SubmitJobRequest request;
    v1::SubmitJobResponse response;
    *request.mutable_spec() = daemon.Spec(1, 1);
    request.set_request_id("once");
    ASSERT_TRUE(daemon.jobs->SubmitJob(&context, request, &response).ok());
    ids.insert(response.job_id());
  }
  EXPECT_EQ(ids.size(), 1u);
}

TEST(Daemon, PagesOfJobsAreStableUnderNewSubmissions) {
  DaemonUnderTest daemon;
  daemon.Apply(DaemonUnderTest::Description(1, 2, 2));
  std::set<uint64_t> expected, seen;
  for (int i = 0; i < 25; ++i) expected.insert(daemon.Submit(daemon.Spec(1, 1)));
  v1::ListJobsRequest request;
  request.set_page_size(10);
  int pages = 0;
  do {
    grpc::ClientContext context;
    v1::ListJobsResponse response;
    ASSERT_TRUE(daemon.jobs->ListJobs(&context, request, &response).ok());
    EXPECT_EQ(response.total_size(), 25u + static_cast<uint32_t>(pages));
    for (const v1::Job& job : response.jobs()) EXPECT_TRUE(seen.insert(job.job_id()).second) << job.job_id() << " twice";
    request.set_page_token(response.next_page_token());
    ++pages;
    daemon.Submit(daemon.Spec(1, 1));
  } while (!request.page_token().empty());
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(seen, expected);
}

TEST(Daemon, NodesComeInFabricOrderByPagesAndDomains) {
  DaemonUnderTest daemon;
  daemon.Apply(DaemonUnderTest::Description(2, 2, 2));
  v1::ListNodesRequest request;
  request.set_page_size(3);
  std::vector<std::string> names;
  do {
    grpc::ClientContext context;
    v1::ListNodesResponse response;
    ASSERT_TRUE(daemon.nodes->ListNodes(&context, request, &response).ok());
    for (const v1::Node& node : response.nodes()) names.push_back(node.name());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(names, std::vector<std::string>({"h1", "h2", "h3", "h4"}));
  grpc::ClientContext context;
  v1::ListNodesResponse response;
  request = v1::ListNodesRequest();
  request.set_domain("r2");
  ASSERT_TRUE(daemon.nodes->ListNodes(&context, request, &response).ok());
  EXPECT_EQ(response.total_size(), 2u);
}

TEST(Daemon, AnUnknownHostsAgentIsTurnedAwayByName) {
  DaemonUnderTest daemon;
  daemon.Apply(DaemonUnderTest::Description(1, 1, 1));
  const auto stub = v1::AgentService::NewStub(daemon.channel);
  grpc::ClientContext context;
  const auto stream = stub->Connect(&context);
  v1::AgentMessage hello;
  hello.mutable_hello()->set_node("stranger");
  hello.mutable_hello()->set_protocol_version(1);
  stream->Write(hello);
  v1::SchedulerMessage message;
  EXPECT_FALSE(stream->Read(&message));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("stranger"));
}

TEST(Daemon, AStreamThatBeginsWithoutHelloIsClosed) {
  DaemonUnderTest daemon;
  const auto stub = v1::AgentService::NewStub(daemon.channel);
  grpc::ClientContext context;
  const auto stream = stub->Connect(&context);
  v1::AgentMessage message;
  message.mutable_slot()->mutable_id()->set_job_id(1);
  stream->Write(message);
  v1::SchedulerMessage answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(Daemon, LogsOfAHostThatIsAwayAreNamed) {
  DaemonUnderTest daemon;
  daemon.Apply(DaemonUnderTest::Description(1, 1, 1));
  uint64_t id = 0;
  {
    SimulatedFleet::Options options = Fleet(daemon, 1, 1);
    options.ranks_end_at_once = true;
    SimulatedFleet fleet(options);
    id = daemon.Submit(daemon.Spec(1, 1));
    daemon.WaitState(id, v1::JOB_STATE_COMPLETED);
  }
  daemon.WaitNode("h1", v1::NODE_STATE_DOWN);
  grpc::ClientContext context;
  v1::StreamLogsRequest request;
  request.set_job_id(id);
  const auto stream = daemon.logs->StreamLogs(&context, request);
  v1::StreamLogsResponse chunk;
  EXPECT_FALSE(stream->Read(&chunk));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("h1"));
}

TEST(Daemon, PlansOnTheClusterAsItIs) {
  DaemonUnderTest daemon;
  daemon.Apply(DaemonUnderTest::Description(2, 2, 2));
  SimulatedFleet fleet(Fleet(daemon, 4, 2));
  ASSERT_TRUE(fleet.WaitWelcomed(kPatience));
  v1::PlanRequest request;
  request.set_nodes(4);
  request.set_gpus_per_node(2);
  grpc::ClientContext context;
  v1::PlanResponse response;
  ASSERT_TRUE(daemon.placement->Plan(&context, request, &response).ok());
  EXPECT_TRUE(response.feasible()) << response.why();
  EXPECT_EQ(response.hosts_size(), 4);
  EXPECT_TRUE(response.proven_optimal());
}

TEST(Daemon, ServesHealthAndReflection) {
  DaemonUnderTest daemon;
  // Both are standard services; what counts here is that they are there.
  for (const char* method : {"/grpc.health.v1.Health/Check", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    const grpc::Status status = daemon.Send(method, "");
    EXPECT_NE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method << ": " << status.error_message();
  }
}

}  // namespace
}  // namespace closeknit
