#include "agents/scheduler_link.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agents/agent_stream.h"
#include "proto/base/log.h"

namespace closeknit {
namespace {

constexpr absl::Duration kWelcomeTimeout = absl::Seconds(15);
constexpr absl::Duration kLasted = absl::Seconds(5);  // a stream that lived so long was no failure

}  // namespace

absl::Duration BackOff(int failures, double spread) {
  const absl::Duration whole = std::min(kMaxBackOff, kFirstBackOff * static_cast<double>(1 << std::clamp(failures, 0, 16)));
  return whole * (0.5 + spread / 2);
}

SchedulerLink::SchedulerLink(EventLoop* loop, std::string target, Callbacks callbacks)
    : loop_(loop), target_(std::move(target)), callbacks_(std::move(callbacks)) {}

SchedulerLink::~SchedulerLink() {
  loop_->Cancel(timer_);
  if (stream_ != nullptr) stream_->Cancel();
  MutexLock lock(&mutex_);
  while (open_ > 0) none_open_.Wait(&mutex_);
}

void SchedulerLink::Connect() {
  const uint64_t generation = ++generation_;
  welcomed_ = false;
  began_ = absl::Now();
  v1::AgentMessage hello;
  *hello.mutable_hello() = callbacks_.hello();
  {
    MutexLock lock(&mutex_);
    ++open_;
  }
  const std::shared_ptr<grpc::Channel> last = std::exchange(channel_, DialScheduler(target_));
  stream_ = AgentStream::Open(
      channel_, std::move(hello),
      {.on_message =
           [this, generation](v1::SchedulerMessage message) {
             loop_->Post([this, generation, message = std::move(message)] { OnMessage(generation, message); });
           },
       .on_end = [this, generation](absl::Status status,
                                    std::shared_ptr<AgentStream> stream) { Ended(generation, std::move(status), std::move(stream)); }});
  timer_ = loop_->After(kWelcomeTimeout, [this] { Drop(absl::StrCat("no Welcome within ", absl::FormatDuration(kWelcomeTimeout))); });
}

void SchedulerLink::Send(v1::AgentMessage message) {
  if (stream_ != nullptr) stream_->Send(std::move(message));
}

void SchedulerLink::Drop(const std::string& why) { OnEnd(generation_, absl::UnavailableError(why)); }

void SchedulerLink::OnMessage(uint64_t generation, const v1::SchedulerMessage& message) {
  if (generation != generation_ || stream_ == nullptr) return;
  if (message.has_welcome()) {
    loop_->Cancel(timer_);
    welcomed_ = true;
  } else if (!welcomed_) {
    return Drop("the scheduler's first message is no Welcome");
  }
  callbacks_.on_message(message);
}

// By one of gRPC's threads: the loop is the one that lets go of the stream.
void SchedulerLink::Ended(uint64_t generation, absl::Status status, std::shared_ptr<AgentStream> stream) {
  loop_->Post([this, generation, status = std::move(status), stream = std::move(stream)] { OnEnd(generation, status); });
  MutexLock lock(&mutex_);
  if (--open_ == 0) none_open_.SignalAll();
}

void SchedulerLink::OnEnd(uint64_t generation, const absl::Status& status) {
  if (generation != generation_ || stream_ == nullptr) return;
  stream_->Cancel();
  stream_.reset();
  loop_->Cancel(timer_);
  const bool lasted = welcomed_ && absl::Now() - began_ >= kLasted;
  failures_ = lasted ? 0 : failures_ + 1;
  const absl::Duration pause = BackOff(failures_ - (lasted ? 0 : 1), absl::Uniform(random_, 0.0, 1.0));
  Log(LogLevel::kWarning, "not connected; ranks run on",
      {{"scheduler", target_},
       {"why", status.ToString()},
       {"next_try_in", absl::FormatDuration(absl::Trunc(pause, absl::Milliseconds(1)))}});
  timer_ = loop_->After(pause, [this] { Connect(); });
  if (std::exchange(welcomed_, false)) callbacks_.on_down();
}

}  // namespace closeknit
