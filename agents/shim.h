// knit-shim: the supervisor of one slot. It prepares the slot, starts its ranks, writes their logs and verdicts to disk, and ends them all;
// it outlives the agent that started it, and answers any agent that shows the slot's cookie. One thread.
//
// What it promises:
//  * A slot runs once: the state STARTED is on disk before the first fork, and a shim that finds a state on disk refuses to run.
//  * A verdict is on disk before it is reported.
//  * ENDED means that no process of the slot is left, whatever it forked.
//  * When the shim dies, the kernel kills the ranks; the agent kills what they had forked.
#ifndef CLOSEKNIT_AGENTS_SHIM_H_
#define CLOSEKNIT_AGENTS_SHIM_H_

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/event_loop.h"
#include "agents/frame_socket.h"
#include "agents/prepare.h"
#include "agents/process_tree.h"
#include "agents/rank_process.h"
#include "agents/slot_directory.h"
#include "closeknit/v1/shim.pb.h"

namespace closeknit {

class Shim {
 public:
  // Reads the order, takes the lock, listens. kFailedPrecondition: this slot has run already. kUnavailable: its shim lives.
  // Blocks SIGCHLD in the process, and makes it the reaper of all its descendants.
  static absl::StatusOr<std::unique_ptr<Shim>> Open(const std::string& directory);

  // Prepares, then serves until the slot is released.
  void Run();

 private:
  struct Rank {
    uint32_t number = 0;
    RankProcess process;
    bool running = false;
  };
  struct Client {
    std::unique_ptr<FrameSocket> socket;
    bool subscribed = false;
  };

  Shim(std::string directory, v1::ShimOrder order) : directory_(std::move(directory)), order_(std::move(order)) {}

  // shim.cc: the state and who asks for it
  void OnConnect();
  void OnRequest(std::list<Client>::iterator client, const std::string& frame);
  void Publish();  // state to disk, then to all subscribers
  void PrepareNow();
  void OnStop(const v1::StopSlot& stop);
  v1::SlotState state() const { return reply_.status().state(); }

  // shim_ranks.cc: the processes
  void Start(const v1::StartSlot& start);
  absl::Status WriteGangFiles(const v1::StartSlot& start, std::vector<GangHost>* hosts);
  void StartRanks(const v1::StartSlot& start, const std::vector<GangHost>& hosts);
  void OnOutput(size_t index);
  void Drain(size_t index);
  void OnChildren();
  void RecordExit(size_t index, int wait_status);
  void StopRanks(absl::Duration grace);
  void EndIfNothingLeft();
  void Sweep();
  void KillAll();
  void End();
  void SignalAll(const std::vector<pid_t>& pids, int signal_number);

  const SlotDirectory directory_;
  const v1::ShimOrder order_;
  OwnedFd lock_, listener_, children_;
  EventLoop loop_;
  std::list<Client> clients_;
  v1::ShimReply reply_;
  PreparedSlot prepared_;
  SlotCgroup cgroup_{""};
  std::vector<Rank> ranks_;
  bool stopping_ = false;  // ranks that end from now on were told to
  bool sweeping_ = false;  // all ranks have ended, and what they left behind is being ended
  bool no_children_ = true;
  EventLoop::TimerId kill_timer_ = 0;
  absl::Duration kill_pause_;  // between two rounds of KillAll
};

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_SHIM_H_
