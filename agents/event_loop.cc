#include "agents/event_loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "proto/base/check.h"

namespace closeknit {
namespace {

int64_t MonotonicNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

EventLoop::EventLoop() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { CHECK(wake_.ok()) << strerror(errno); }

void EventLoop::WatchReadable(int fd, Handler handler) { watched_[fd].readable = std::make_shared<Handler>(std::move(handler)); }

void EventLoop::WatchWritable(int fd, Handler handler) { watched_[fd].writable = std::make_shared<Handler>(std::move(handler)); }

void EventLoop::IgnoreWritable(int fd) {
  const auto found = watched_.find(fd);
  if (found != watched_.end()) found->second.writable.reset();
}

void EventLoop::Ignore(int fd) { watched_.erase(fd); }

EventLoop::TimerId EventLoop::After(absl::Duration delay, Handler handler) {
  const int64_t when = MonotonicNanos() + absl::ToInt64Nanoseconds(std::clamp(delay, absl::ZeroDuration(), absl::Hours(24 * 365)));
  const TimerId timer = ++last_timer_;
  timers_.emplace(std::pair(when, timer), std::move(handler));
  due_.emplace(timer, when);
  return timer;
}

void EventLoop::Cancel(TimerId timer) {
  const auto found = due_.find(timer);
  if (found == due_.end()) return;
  timers_.erase({found->second, timer});
  due_.erase(found);
}

void EventLoop::Post(Handler task) {
  {
    MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
  }
  const uint64_t one = 1;
  // The counter cannot overflow: it is reset at each wake-up.
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void EventLoop::Run() {
  while (!stopped_) RunOnce(absl::Hours(1));
}

void EventLoop::RunOnce(absl::Duration limit) {
  std::vector<pollfd> polled;
  polled.push_back({wake_.get(), POLLIN, 0});
  // O(descriptors): a slot's ranks and agents, or a host's supervisors.
  for (const auto& [fd, handlers] : watched_) {
    const short events = static_cast<short>((handlers.readable ? POLLIN : 0) | (handlers.writable ? POLLOUT : 0));
    polled.push_back({fd, events, 0});
  }
  const absl::Duration wait = std::min(limit, UntilNextTimer());
  const int64_t milliseconds = absl::ToInt64Milliseconds(wait + absl::Milliseconds(1) - absl::Nanoseconds(1));  // rounded up: no spinning
  const int ready = poll(polled.data(), polled.size(), static_cast<int>(milliseconds));
  CHECK(ready >= 0 || errno == EINTR || errno == ENOMEM) << "poll: " << strerror(errno);
  if (ready > 0 && polled[0].revents != 0) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof(count));
  }
  RunTasks();
  for (size_t i = 1; ready > 0 && i < polled.size(); ++i) {
    if (polled[i].revents != 0) RunHandlers(polled[i].fd, polled[i].revents);
  }
  RunDueTimers();
}

absl::Duration EventLoop::UntilNextTimer() const {
  if (timers_.empty()) return absl::InfiniteDuration();
  return absl::Nanoseconds(std::max<int64_t>(0, timers_.begin()->first.first - MonotonicNanos()));
}

void EventLoop::RunDueTimers() {
  const int64_t now = MonotonicNanos();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    const Handler handler = std::move(timers_.begin()->second);
    due_.erase(timers_.begin()->first.second);
    timers_.erase(timers_.begin());
    handler();
  }
}

void EventLoop::RunTasks() {
  std::vector<Handler> tasks;
  {
    MutexLock lock(&mutex_);
    tasks.swap(tasks_);
  }
  for (const Handler& task : tasks) task();
}

// A handler may end the watch of any descriptor: each is looked up anew, and kept alive while it runs.
void EventLoop::RunHandlers(int fd, short happened) {
  if ((happened & (POLLOUT | POLLERR | POLLHUP)) != 0) {
    const auto found = watched_.find(fd);
    if (found != watched_.end() && found->second.writable) {
      const std::shared_ptr<Handler> handler = found->second.writable;
      (*handler)();
    }
  }
  if ((happened & (POLLIN | POLLERR | POLLHUP | POLLNVAL)) != 0) {
    const auto found = watched_.find(fd);
    if (found != watched_.end() && found->second.readable) {
      const std::shared_ptr<Handler> handler = found->second.readable;
      (*handler)();
    }
  }
}

}  // namespace closeknit
