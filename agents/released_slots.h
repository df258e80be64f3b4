// Slots that the agent has forgotten, until their supervisor has gone and their files are removed.
#ifndef CLOSEKNIT_AGENTS_RELEASED_SLOTS_H_
#define CLOSEKNIT_AGENTS_RELEASED_SLOTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "agents/event_loop.h"
#include "agents/frame_socket.h"
#include "agents/slot_directory.h"

namespace closeknit {

class ReleasedSlots {
 public:
  ReleasedSlots(EventLoop* loop, Spool spool) : loop_(loop), spool_(std::move(spool)) {}
  ~ReleasedSlots();

  // Ends what an earlier agent left here.
  absl::Status Adopt();

  // Takes the slot's directory away: after OK the slot is forgotten, also by later agents. Its shim is told to exit.
  absl::Status Add(const SlotDirectory& directory);

 private:
  struct Leaving {
    std::unique_ptr<FrameSocket> socket;
    EventLoop::TimerId timer = 0;
    int tries = 0;
  };
  void TellToExit(const std::string& path);
  void Later(const std::string& path);

  EventLoop* const loop_;
  const Spool spool_;
  std::map<std::string, Leaving> leaving_;  // by path
  uint64_t last_ = 0;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_RELEASED_SLOTS_H_
