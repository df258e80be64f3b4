// One thread's loop over file descriptors, timers, and what other threads ask of it. Both knit-agent and knit-shim are one such thread.
#ifndef CLOSEKNIT_AGENTS_EVENT_LOOP_H_
#define CLOSEKNIT_AGENTS_EVENT_LOOP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "agents/files.h"
#include "proto/base/mutex.h"

namespace closeknit {

// Not thread-safe but for Post. Handlers may watch, ignore, and set timers, also for themselves.
class EventLoop {
 public:
  using Handler = std::function<void()>;
  using TimerId = uint64_t;  // 0 is no timer

  EventLoop();

  // Calls `handler` when the descriptor can be read (or has failed, or was closed by its peer). One handler a descriptor; a second call
  // replaces it. The descriptor must be ignored before it is closed.
  void WatchReadable(int fd, Handler handler);
  // As well, calls `handler` when it can be written, until IgnoreWritable.
  void WatchWritable(int fd, Handler handler);
  void IgnoreWritable(int fd);
  void Ignore(int fd);

  // Calls once, after this long by the monotonic clock.
  TimerId After(absl::Duration delay, Handler handler);
  void Cancel(TimerId timer);

  // From any thread: calls `task` on the loop's thread, in the order of the calls.
  void Post(Handler task) ABSL_LOCKS_EXCLUDED(mutex_);

  // Until Stop, which any handler or task may call.
  void Run();
  void Stop() { stopped_ = true; }
  // One round: waits for at most `limit`, then calls what is due.
  void RunOnce(absl::Duration limit);

 private:
  struct Watched {
    std::shared_ptr<Handler> readable, writable;
  };
  absl::Duration UntilNextTimer() const;
  void RunDueTimers();
  void RunTasks();
  void RunHandlers(int fd, short happened);

  std::map<int, Watched> watched_;
  std::map<std::pair<int64_t, TimerId>, Handler> timers_;  // key: nanoseconds of the monotonic clock
  std::map<TimerId, int64_t> due_;
  TimerId last_timer_ = 0;
  bool stopped_ = false;
  OwnedFd wake_;
  Mutex mutex_;  // Post is called by gRPC's and readers' threads
  std::vector<Handler> tasks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_EVENT_LOOP_H_
