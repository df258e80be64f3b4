// The agent's stream to the scheduler: one at a time, made again with jittered back-off when it breaks.
#ifndef CLOSEKNIT_AGENTS_SCHEDULER_LINK_H_
#define CLOSEKNIT_AGENTS_SCHEDULER_LINK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/event_loop.h"
#include "closeknit/v1/agent.grpc.pb.h"
#include "proto/base/mutex.h"

namespace closeknit {

class AgentStream;

// How long to wait before the next try. Pure but for the generator: `spread` is in [0, 1).
//   base * 2^failures, at most `most`, of which a random half is left out: agents that lost one scheduler do not all come back at once.
absl::Duration BackOff(int failures, double spread);
inline constexpr absl::Duration kFirstBackOff = absl::Milliseconds(200);
inline constexpr absl::Duration kMaxBackOff = absl::Seconds(15);

// One thread, that of the loop; callbacks come there, too.
class SchedulerLink {
 public:
  struct Callbacks {
    std::function<v1::Hello()> hello;                             // the inventory, when a stream begins
    std::function<void(const v1::SchedulerMessage&)> on_message;  // Welcome first
    std::function<void()> on_down;                                // after a Welcome: the stream has ended
  };
  SchedulerLink(EventLoop* loop, std::string target, Callbacks callbacks);
  // Ends the stream, and waits until gRPC is done with it.
  ~SchedulerLink();

  void Start() { Connect(); }
  // Between the Hello and the end of a stream; else nothing: the next Hello says it all.
  void Send(v1::AgentMessage message);
  // Ends this stream, for a reason that the log gets; the next is tried after the back-off.
  void Drop(const std::string& why);
  bool welcomed() const { return welcomed_; }

 private:
  void Connect();
  void OnMessage(uint64_t generation, const v1::SchedulerMessage& message);
  void OnEnd(uint64_t generation, const absl::Status& status);
  void Ended(uint64_t generation, absl::Status status, std::shared_ptr<AgentStream> stream);

  EventLoop* const loop_;
  const std::string target_;
  const Callbacks callbacks_;
  absl::BitGen random_;
  // A new stream has a new connection, and the old channel goes after the new one is in use: while there is a channel, gRPC keeps its
  // threads.
  std::shared_ptr<grpc::Channel> channel_;
  std::shared_ptr<AgentStream> stream_;  // nullptr between streams
  uint64_t generation_ = 0;              // of the stream; what an older one still says is not heard
  int failures_ = 0;                     // since a stream lasted
  bool welcomed_ = false;
  absl::Time began_;
  EventLoop::TimerId timer_ = 0;  // of the next try, or of the Welcome that is late
  Mutex mutex_;                   // Ended is called by gRPC
  CondVar none_open_;
  int open_ ABSL_GUARDED_BY(mutex_) = 0;  // streams that gRPC is not done with
};

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_SCHEDULER_LINK_H_
