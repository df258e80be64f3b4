#include "scheduler/testing/daemon_under_test.h"

#include <grpcpp/generic/generic_stub.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/check.h"
#include "proto/base/mutex.h"

namespace closeknit {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

}  // namespace

DaemonUnderTest::DaemonUnderTest(std::unique_ptr<Store> store, DaemonOptions options) {
  options.listen = "127.0.0.1:0";
  absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(options, std::move(store));
  CHECK_OK(daemon.status());
  daemon_ = *std::move(daemon);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  channel = grpc::CreateCustomChannel(target(), grpc::InsecureChannelCredentials(), arguments);
  jobs = v1::JobService::NewStub(channel);
  nodes = v1::NodeService::NewStub(channel);
  topology = v1::TopologyService::NewStub(channel);
  placement = v1::PlacementService::NewStub(channel);
  logs = v1::LogService::NewStub(channel);
}

std::string DaemonUnderTest::target() const { return absl::StrCat("127.0.0.1:", daemon_->port()); }

std::string DaemonUnderTest::Description(int racks, int hosts_a_rack, int gpus) {
  std::string text = absl::StrCat("#closeknit: gpus=", gpus, "\n");
  for (int rack = 0; rack < racks; ++rack) {
    absl::StrAppend(&text, "SwitchName=r", rack + 1, " Nodes=h[", rack * hosts_a_rack + 1, "-", (rack + 1) * hosts_a_rack, "]\n");
  }
  absl::StrAppend(&text, "SwitchName=core Switches=r[1-", racks, "]\n");
  return text;
}

void DaemonUnderTest::Apply(const std::string& description) {
  grpc::ClientContext context;
  v1::ApplyTopologyRequest request;
  v1::ApplyTopologyResponse response;
  request.set_description(description);
  const grpc::Status status = topology->ApplyTopology(&context, request, &response);
  CHECK(status.ok()) << status.error_message();
}

v1::JobSpec DaemonUnderTest::Spec(uint32_t nodes, uint32_t gpus) const {
  v1::JobSpec spec;
  spec.set_nodes(nodes);
  spec.set_gpus_per_node(gpus);
  spec.add_command("train");
  return spec;
}

uint64_t DaemonUnderTest::Submit(const v1::JobSpec& spec) {
  grpc::ClientContext context;
  v1::SubmitJobRequest request;
  v1::SubmitJobResponse response;
  *request.mutable_spec() = spec;
  request.set_user("ada");
  const grpc::Status status = jobs->SubmitJob(&context, request, &response);
  CHECK(status.ok()) << status.error_message();
  return response.job_id();
}

v1::Job DaemonUnderTest::Job(uint64_t id) {
  grpc::ClientContext context;
  v1::GetJobRequest request;
  v1::Job job;
  request.set_job_id(id);
  const grpc::Status status = jobs->GetJob(&context, request, &job);
  CHECK(status.ok()) << status.error_message();
  return job;
}

v1::Job DaemonUnderTest::WaitFor(uint64_t id, const std::function<bool(const v1::Job&)>& done) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  v1::WatchJobsRequest request;
  request.add_job_ids(id);
  const auto stream = jobs->WatchJobs(&context, request);
  v1::WatchJobsResponse response;
  while (stream->Read(&response)) {
    if (!done(response.job())) continue;
    context.TryCancel();
    return response.job();
  }
  CHECK(false) << "job " << id << " never got there: " << response.job().DebugString();
  return response.job();
}

v1::Job DaemonUnderTest::WaitState(uint64_t id, v1::JobState state) {
  return WaitFor(id, [state](const v1::Job& job) { return job.state() == state; });
}

grpc::Status DaemonUnderTest::Send(const std::string& method, const std::string& bytes) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  Mutex mutex;
  CondVar answered;
  std::optional<grpc::Status> answer;
  stub.UnaryCall(&context, method, grpc::StubOptions(), &request, &response, [&](grpc::Status status) {
    MutexLock lock(&mutex);
    answer = std::move(status);
    answered.Signal();
  });
  MutexLock lock(&mutex);
  while (!answer.has_value()) answered.Wait(&mutex);
  return *answer;
}

v1::Node DaemonUnderTest::WaitNode(const std::string& name, v1::NodeState state) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  v1::WatchNodesRequest request;
  request.add_nodes(name);
  const auto stream = nodes->WatchNodes(&context, request);
  v1::WatchNodesResponse response;
  while (stream->Read(&response)) {
    if (response.node().state() != state) continue;
    context.TryCancel();
    return response.node();
  }
  CHECK(false) << "node " << name << " never got there: " << response.node().DebugString();
  return response.node();
}

}  // namespace closeknit
