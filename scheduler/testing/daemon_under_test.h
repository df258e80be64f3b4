// A daemon in the test's own process, on a free loopback port, with stubs of all its services.
#ifndef CLOSEKNIT_SCHEDULER_TESTING_DAEMON_UNDER_TEST_H_
#define CLOSEKNIT_SCHEDULER_TESTING_DAEMON_UNDER_TEST_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "closeknit/v1/jobs.grpc.pb.h"
#include "closeknit/v1/logs.grpc.pb.h"
#include "closeknit/v1/nodes.grpc.pb.h"
#include "closeknit/v1/placement.grpc.pb.h"
#include "closeknit/v1/topology.grpc.pb.h"
#include "scheduler/daemon.h"

namespace closeknit {

class DaemonUnderTest {
 public:
  explicit DaemonUnderTest(std::unique_ptr<Store> store = NewMemoryStore(), DaemonOptions options = DaemonOptions());

  std::string target() const;
  void Stop() { daemon_ = nullptr; }

  // Racks r1.. of hosts h1.. with that many GPUs each, applied.
  static std::string Description(int racks, int hosts_a_rack, int gpus);
  void Apply(const std::string& description);

  v1::JobSpec Spec(uint32_t nodes, uint32_t gpus) const;
  uint64_t Submit(const v1::JobSpec& spec);
  v1::Job Job(uint64_t id);
  // Waits until `done` holds for the job, at most 20 s; returns the job.
  v1::Job WaitFor(uint64_t id, const std::function<bool(const v1::Job&)>& done);
  v1::Job WaitState(uint64_t id, v1::JobState state);
  // Sends these bytes to a unary or server-streaming method ("/package.Service/Method"), as a client in any language may.
  grpc::Status Send(const std::string& method, const std::string& bytes);
  v1::Node WaitNode(const std::string& name, v1::NodeState state);

  std::unique_ptr<v1::JobService::Stub> jobs;
  std::unique_ptr<v1::NodeService::Stub> nodes;
  std::unique_ptr<v1::TopologyService::Stub> topology;
  std::unique_ptr<v1::PlacementService::Stub> placement;
  std::unique_ptr<v1::LogService::Stub> logs;
  std::shared_ptr<grpc::Channel> channel;

 private:
  std::unique_ptr<Daemon> daemon_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_TESTING_DAEMON_UNDER_TEST_H_
