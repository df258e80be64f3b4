#include "scheduler/testing/simulated_fleet.h"

#include <grpcpp/grpcpp.h>

#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace closeknit {

class SimulatedAgent : public grpc::ClientBidiReactor<v1::AgentMessage, v1::SchedulerMessage> {
 public:
  SimulatedAgent(SimulatedFleet* fleet, v1::AgentService::Stub* stub, const std::string& host)
      : fleet_(fleet), fake_(host, fleet->options_.gpus) {
    stub->async()->Connect(&context_, this);
    v1::AgentMessage hello;
    *hello.mutable_hello() = fake_.Hello();
    Say(std::move(hello));
    StartRead(&incoming_);
    StartCall();
  }
  ~SimulatedAgent() override {
    context_.TryCancel();
    MutexLock lock(&mutex_);
    while (!done_) ended_.Wait(&mutex_);
  }

  void Say(v1::AgentMessage message) {
    MutexLock lock(&mutex_);
    SayLocked(std::move(message));
  }
  void Beat() {
    MutexLock lock(&mutex_);
    if (silent_ || !outgoing_.empty()) return;  // what waits is a sign of life as well
    v1::AgentMessage message;
    message.mutable_heartbeat();
    SayLocked(std::move(message));
  }
  void Silence() {
    MutexLock lock(&mutex_);
    silent_ = true;
  }
  void ExitRank(FakeAgent::Key key, uint32_t rank, int code) {
    MutexLock lock(&mutex_);
    if (auto report = fake_.ExitRank(key, rank, code, 0, absl::Now()); report.has_value()) SayLocked(*std::move(report));
  }
  void ExitAll(int code) {
    MutexLock lock(&mutex_);
    for (const auto& [key, slot] : std::map(fake_.slots())) ExitSlot(key, slot, code);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    {
      MutexLock lock(&mutex_);
      Receive(incoming_);
    }
    fleet_->Count(incoming_);
    StartRead(&incoming_);
  }
  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    outgoing_.pop_front();
    if (!ok) outgoing_.clear();
    Write();
  }
  void OnDone(const grpc::Status&) override {
    MutexLock lock(&mutex_);
    done_ = true;
    ended_.SignalAll();
  }

 private:
  void Receive(const v1::SchedulerMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (message.has_read_log()) return SayLocked(ReadLog(message.read_log()));
    for (v1::AgentMessage& answer : fake_.Receive(message, absl::Now())) SayLocked(std::move(answer));
    if (!message.has_start() || !fleet_->options_.ranks_end_at_once) return;
    const FakeAgent::Key key = {message.start().id().job_id(), message.start().id().attempt()};
    const auto slot = fake_.slots().find(key);
    if (slot != fake_.slots().end()) ExitSlot(key, FakeAgent::Slot(slot->second), 0);
  }
  // One report for all ranks: a host's ranks end together more often than not.
  void ExitSlot(FakeAgent::Key key, const FakeAgent::Slot& slot, int code) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::optional<v1::AgentMessage> report;
    for (uint32_t rank = slot.first_rank; rank < slot.first_rank + slot.ranks; ++rank) {
      if (auto next = fake_.ExitRank(key, rank, code, 0, absl::Now()); next.has_value()) report = std::move(next);
    }
    if (report.has_value()) SayLocked(*std::move(report));
  }
  // Every rank has written one line.
  static v1::AgentMessage ReadLog(const v1::ReadLog& read) {
    const std::string line = absl::StrCat("rank ", read.rank(), " of attempt ", read.id().attempt(), "\n");
    v1::AgentMessage message;
    v1::LogData& data = *message.mutable_log_data();
    data.set_request_id(read.request_id());
    data.set_offset(read.offset());
    if (read.offset() < line.size()) data.set_data(line.substr(read.offset()));
    data.set_rank_ended(true);
    return message;
  }
  void SayLocked(v1::AgentMessage message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (silent_ || done_) return;
    outgoing_.push_back(std::move(message));
    Write();
  }
  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || outgoing_.empty()) return;
    writing_ = true;
    StartWrite(&outgoing_.front());
  }

  SimulatedFleet* const fleet_;
  grpc::ClientContext context_;
  v1::SchedulerMessage incoming_;
  Mutex mutex_;  // gRPC's threads and the test's meet here
  CondVar ended_;
  FakeAgent fake_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::AgentMessage> outgoing_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool silent_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

SimulatedFleet::SimulatedFleet(Options options) : options_(std::move(options)) {
  for (int i = 0; i < options_.connections; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // or all channels would be one connection
    arguments.SetMaxReceiveMessageSize(-1);
    stubs_.push_back(v1::AgentService::NewStub(grpc::CreateCustomChannel(options_.target, grpc::InsecureChannelCredentials(), arguments)));
  }
  size_t next = 0;
  for (const std::string& host : options_.hosts) {
    agents_[host] = std::make_unique<SimulatedAgent>(this, stubs_[next++ % stubs_.size()].get(), host);
  }
  beat_ = std::thread([this] { Beat(); });
}

SimulatedFleet::~SimulatedFleet() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.SignalAll();
  beat_.join();
  agents_.clear();
}

void SimulatedFleet::Beat() {
  while (true) {
    {
      const absl::Time next = absl::Now() + options_.heartbeat;
      MutexLock lock(&mutex_);
      while (!stopping_ && absl::Now() < next) changed_.WaitFor(&mutex_, next - absl::Now());
      if (stopping_) return;
    }
    for (const auto& [host, agent] : agents_) agent->Beat();
  }
}

void SimulatedFleet::Count(const v1::SchedulerMessage& message) {
  if (!message.has_welcome() && !message.has_start()) return;
  MutexLock lock(&mutex_);
  ++(message.has_welcome() ? welcomed_ : started_);
  changed_.SignalAll();
}

bool SimulatedFleet::WaitWelcomed(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  MutexLock lock(&mutex_);
  while (welcomed_ < static_cast<int>(agents_.size())) {
    if (absl::Now() >= deadline) return false;
    changed_.WaitFor(&mutex_, deadline - absl::Now());
  }
  return true;
}

bool SimulatedFleet::WaitStarted(int slots, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  MutexLock lock(&mutex_);
  while (started_ < slots) {
    if (absl::Now() >= deadline) return false;
    changed_.WaitFor(&mutex_, deadline - absl::Now());
  }
  started_ = 0;
  return true;
}

void SimulatedFleet::ExitRank(const std::string& host, FakeAgent::Key key, uint32_t rank, int code) {
  agents_.at(host)->ExitRank(key, rank, code);
}

void SimulatedFleet::ExitAll(int code) {
  for (const auto& [host, agent] : agents_) agent->ExitAll(code);
}

void SimulatedFleet::Silence(const std::string& host) { agents_.at(host)->Silence(); }

}  // namespace closeknit
