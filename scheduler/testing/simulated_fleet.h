// Many agents in one process that speak real gRPC to a scheduler; behind each is a FakeAgent, whose ranks end when they are told to.
//
// For tests of the daemon, and for benches with thousands of hosts.
#ifndef CLOSEKNIT_SCHEDULER_TESTING_SIMULATED_FLEET_H_
#define CLOSEKNIT_SCHEDULER_TESTING_SIMULATED_FLEET_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "closeknit/v1/agent.grpc.pb.h"
#include "proto/base/mutex.h"
#include "scheduler/core/testing/fake_agent.h"

namespace closeknit {

class SimulatedAgent;

class SimulatedFleet {
 public:
  struct Options {
    std::string target;  // HOST:PORT of the scheduler
    std::vector<std::string> hosts;
    int gpus = 8;                                        // of each host
    int connections = 4;                                 // TCP connections that the streams share
    bool ranks_end_at_once = false;                      // with exit code 0, as soon as they are started
    absl::Duration heartbeat = absl::Milliseconds(200);  // of every agent
  };
  explicit SimulatedFleet(Options options);
  ~SimulatedFleet();  // breaks all streams

  // Whether every agent (or one) was welcomed, after waiting for that at most so long.
  bool WaitWelcomed(absl::Duration timeout);

  // Ends a rank on a host, as FakeAgent::ExitRank; the report is sent.
  void ExitRank(const std::string& host, FakeAgent::Key key, uint32_t rank, int code);
  // All running ranks of all hosts end with that code.
  void ExitAll(int code);
  // The agent says nothing more, not even that it lives; its stream stays.
  void Silence(const std::string& host);
  // Waits until START has reached this many slots since the last call with true; at most so long.
  bool WaitStarted(int slots, absl::Duration timeout);

  const Options& options() const { return options_; }

 private:
  friend class SimulatedAgent;
  void Beat();
  void Count(const v1::SchedulerMessage& message);

  const Options options_;
  std::vector<std::unique_ptr<v1::AgentService::Stub>> stubs_;
  absl::flat_hash_map<std::string, std::unique_ptr<SimulatedAgent>> agents_;

  Mutex mutex_;  // agents' threads count here
  CondVar changed_;
  int welcomed_ ABSL_GUARDED_BY(mutex_) = 0;
  int started_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread beat_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_TESTING_SIMULATED_FLEET_H_
