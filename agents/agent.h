// knit-agent as a whole: one loop, one stream to the scheduler, the host's slots. It decides nothing: commands go to Slots, reports to the
// scheduler.
#ifndef CLOSEKNIT_AGENTS_AGENT_H_
#define CLOSEKNIT_AGENTS_AGENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/event_loop.h"
#include "agents/fence.h"
#include "agents/log_reads.h"
#include "agents/scheduler_link.h"
#include "agents/slot_directory.h"
#include "agents/slots.h"
#include "closeknit/v1/agent.pb.h"

namespace closeknit {

struct AgentOptions {
  std::string scheduler;  // HOST:PORT
  std::string address;    // where ranks of other hosts reach this one
  std::string spool;      // directory; made if it is not there
  SlotsConfig slots;
  std::optional<uint32_t> simulated_gpus;  // nullopt: NVML says
  std::string nvml;                        // path or soname
  absl::Duration gpu_period = absl::Seconds(30);
};

class Agent {
 public:
  // Locks the spool, reads the fence, adopts the slots that are there. kUnavailable: another agent has this spool. Errors name the file.
  static absl::StatusOr<std::unique_ptr<Agent>> Open(AgentOptions options);
  // Ranks run on.
  ~Agent();

  // Connects, and serves until loop() is stopped. The inventory of GPUs comes first: a scheduler that asks finds it whole.
  void Run();
  EventLoop& loop() { return loop_; }

 private:
  explicit Agent(AgentOptions options);
  v1::Hello MakeHello() const;
  void OnMessage(const v1::SchedulerMessage& message);
  void OnWelcome(const v1::Welcome& welcome);
  void OnGpus(std::vector<v1::Gpu> gpus, const absl::Status& why);
  void ReportHost();
  void Beat();

  const AgentOptions options_;
  const Spool spool_;
  std::string boot_id_, agent_id_;
  EventLoop loop_;
  OwnedFd lock_;
  std::optional<Fence> fence_;
  std::unique_ptr<LogReads> log_reads_;
  std::unique_ptr<Slots> slots_;
  std::unique_ptr<SchedulerLink> link_;
  std::vector<v1::Gpu> gpus_;
  std::string gpu_trouble_;  // empty: none
  bool started_ = false;     // the link was told to connect
  absl::Duration heartbeat_interval_;
  EventLoop::TimerId heartbeat_ = 0;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_AGENT_H_
