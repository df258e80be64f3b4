// The slots of this host: commands to them, what they report, and their adoption after a restart. Speaks to one knit-shim a slot.
//
// Scheduler's commands come in, AgentMessages go out through the callback; the rules are those of proto/closeknit/v1/agent.proto.
// One thread, that of the loop.
#ifndef CLOSEKNIT_AGENTS_SLOTS_H_
#define CLOSEKNIT_AGENTS_SLOTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "agents/event_loop.h"
#include "agents/fence.h"
#include "agents/frame_socket.h"
#include "agents/prepare.h"
#include "agents/rank_environment.h"
#include "agents/released_slots.h"
#include "agents/slot_directory.h"
#include "closeknit/v1/agent.pb.h"
#include "closeknit/v1/shim.pb.h"

namespace closeknit {

// What is the same for all slots of the host.
struct SlotsConfig {
  std::string node;
  std::string shim;  // path of the program knit-shim
  Environment base_environment;
  uint64_t log_max_bytes = 64 << 20;
  uint32_t log_max_files = 3;
  bool slurm_names = true;
  bool openmpi_names = false;
};

// Makes the process ignore SIGCHLD.
class Slots {
 public:
  struct Callbacks {
    std::function<void(v1::AgentMessage)> report;                  // what the scheduler is to hear
    std::function<void(const v1::SlotId&, bool live)> slot_lives;  // a slot may write logs from now on, or will no more
  };

  Slots(EventLoop* loop, Spool spool, SlotsConfig config, Fence* fence, Callbacks callbacks);
  ~Slots();

  // Takes over what the spool says that this host runs. Before the first Inventory.
  absl::Status Adopt();
  std::vector<v1::SlotStatus> Inventory() const;

  // GPUs that the host has at present, by index.
  void SetGpus(std::vector<v1::Gpu> gpus) { gpus_ = std::move(gpus); }

  void Prepare(const v1::PrepareSlot& prepare);
  void Start(const v1::StartSlot& start);
  void Stop(const v1::StopSlot& stop);
  void Release(const v1::ReleaseSlot& release);

 private:
  using Key = std::pair<uint64_t, uint32_t>;  // job, attempt
  struct Slot {
    Slot(SlotDirectory at, const v1::ShimOrder& order);  // PREPARING
    SlotDirectory directory;
    std::string cookie;
    v1::SlotStatus status;
    std::unique_ptr<FrameSocket> socket;   // nullptr while there is no connection
    std::vector<v1::ShimRequest> waiting;  // for the connection
    pid_t child = 0;                       // knit-shim, if this agent has started it and it has not ended
    EventLoop::TimerId timer = 0;          // of the next try to connect, or to end what a dead shim left behind
  };

  // slots.cc: commands
  bool AcceptTerm(const v1::SlotId& id, uint64_t term);
  std::optional<Refusal> Conflict(const v1::PrepareSlot& prepare) const;
  std::optional<Refusal> CheckGpus(const v1::PrepareSlot& prepare) const;
  absl::Status Create(const v1::ShimOrder& order);
  v1::ShimOrder OrderOf(const v1::PrepareSlot& prepare) const;
  void Reject(const v1::SlotId& id, const Refusal& refusal);
  void Report(const Slot& slot);
  Slot* Find(const v1::SlotId& id);
  void Forget(const v1::SlotId& id);

  // slot_links.cc: the shims
  absl::Status AdoptSlot(const v1::SlotId& id);
  absl::Status Spawn(Slot* slot);
  void Connect(const v1::SlotId& id);
  void ConnectLater(const v1::SlotId& id);
  void Tell(const v1::SlotId& id, v1::ShimRequest request);
  void OnReply(const v1::SlotId& id, const std::string& frame);
  bool ShimIsDead(Slot* slot);
  void EndLost(const v1::SlotId& id);
  void Update(const v1::SlotId& id, const v1::ShimReply& reply);

  EventLoop* const loop_;
  const Spool spool_;
  const SlotsConfig config_;
  Fence* const fence_;
  const Callbacks callbacks_;
  std::vector<v1::Gpu> gpus_;
  std::map<Key, std::unique_ptr<Slot>> slots_;
  ReleasedSlots released_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_SLOTS_H_
