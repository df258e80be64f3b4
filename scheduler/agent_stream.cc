#include "scheduler/agent_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/grpc_status.h"

namespace closeknit {

AgentStream::AgentStream(AgentSessions* sessions, CommitLoop* loop, SessionId id, std::string peer)
    : sessions_(sessions), loop_(loop), id_(id), peer_(std::move(peer)), last_heard_(Clock::now().time_since_epoch().count()) {}

void AgentStream::Begin(std::shared_ptr<AgentStream> self) {
  {
    MutexLock lock(&mutex_);
    self_ = std::move(self);
  }
  StartRead(&incoming_);
}

std::string AgentStream::node() const {
  MutexLock lock(&mutex_);
  return node_;
}

void AgentStream::OnReadDone(bool ok) {
  if (!ok) {
    ReportEnd("its agent has closed the stream");
    MutexLock lock(&mutex_);
    closing_ = true;
    return Write();
  }
  Excuse();
  Receive(std::exchange(incoming_, v1::AgentMessage()));
  StartRead(&incoming_);
}

void AgentStream::Receive(v1::AgentMessage message) {
  if (message.has_heartbeat()) return;
  if (message.has_log_data()) return AnswerLog(message.log_data());
  bool first = false;
  {
    MutexLock lock(&mutex_);
    if (end_reported_) return;
    first = node_.empty();
    if (first && message.has_hello()) node_ = message.hello().node();
  }
  if (!first) return loop_->Post(AgentReported{id_, std::move(message)});
  if (!message.has_hello() || message.hello().node().empty()) {
    return Close(absl::InvalidArgumentError("the first message of an agent is a Hello that names its node"));
  }
  loop_->Post(AgentConnected{id_, std::move(*message.mutable_hello())});
  // The end may have been reported by another thread meanwhile, and have overtaken the beginning.
  MutexLock lock(&mutex_);
  if (end_reported_) loop_->Post(AgentDisconnected{id_, "its agent's stream has ended"});
}

void AgentStream::Send(v1::SchedulerMessage message) {
  MutexLock lock(&mutex_);
  if (closing_ || finished_) return;
  outgoing_bytes_ += message.ByteSizeLong();
  outgoing_.push_back(std::move(message));
  if (outgoing_bytes_ > kMaxQueuedBytes) {
    closing_ = true;
    close_status_ = grpc::Status(grpc::StatusCode::UNAVAILABLE, "the agent does not take its commands");
  }
  Write();
}

void AgentStream::Close(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (!std::exchange(closing_, true)) close_status_ = ToGrpc(status);
  Write();
}

void AgentStream::Write() {
  if (writing_ || finished_) return;
  if (!outgoing_.empty()) {
    writing_ = true;
    return StartWrite(&outgoing_.front());
  }
  if (closing_) {
    finished_ = true;
    Finish(close_status_);
  }
}

void AgentStream::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  writing_ = false;
  outgoing_bytes_ -= outgoing_.front().ByteSizeLong();
  outgoing_.pop_front();
  if (!ok) {
    outgoing_.clear();
    closing_ = true;
  }
  Write();
}

void AgentStream::OnCancel() {
  ReportEnd("its agent's connection broke");
  MutexLock lock(&mutex_);
  closing_ = true;
  if (!writing_) outgoing_.clear();
  Write();
}

void AgentStream::OnDone() {
  ReportEnd("its agent's stream has ended");
  std::shared_ptr<AgentStream> self;  // dies at the end of this function
  MutexLock lock(&mutex_);
  self.swap(self_);
}

void AgentStream::ReportEnd(const std::string& why) {
  std::string node;
  {
    MutexLock lock(&mutex_);
    if (std::exchange(end_reported_, true)) return;
    node = node_;
  }
  FailLogs(absl::UnavailableError(absl::StrCat(node, ": ", why)));
  sessions_->Forget(id_, node);
  if (!node.empty()) loop_->Post(AgentDisconnected{id_, why});
}

absl::Status AgentStream::ReadLog(v1::ReadLog request, AgentSessions::LogAnswer answer) {
  MutexLock lock(&mutex_);
  if (end_reported_ || closing_) return absl::UnavailableError(absl::StrCat(node_, ": its agent's stream has ended"));
  request.set_request_id(next_log_++);
  logs_.emplace(request.request_id(), std::move(answer));
  v1::SchedulerMessage message;
  *message.mutable_read_log() = std::move(request);
  outgoing_bytes_ += message.ByteSizeLong();
  outgoing_.push_back(std::move(message));
  Write();
  return absl::OkStatus();
}

void AgentStream::AnswerLog(const v1::LogData& data) {
  AgentSessions::LogAnswer answer;
  {
    MutexLock lock(&mutex_);
    const auto found = logs_.find(data.request_id());
    if (found == logs_.end()) return;
    answer = std::move(found->second);
    logs_.erase(found);
  }
  answer(data);
}

void AgentStream::FailLogs(const absl::Status& status) {
  absl::flat_hash_map<uint64_t, AgentSessions::LogAnswer> logs;
  {
    MutexLock lock(&mutex_);
    logs.swap(logs_);
  }
  for (auto& [id, answer] : logs) answer(status);
}

}  // namespace closeknit
