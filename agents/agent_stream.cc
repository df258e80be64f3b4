#include "agents/agent_stream.h"

#include <utility>

namespace closeknit {

std::shared_ptr<grpc::Channel> DialScheduler(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  // A scheduler that answers nothing any more, as its host has lost power, is found out in seconds.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

AgentStream::AgentStream(std::shared_ptr<grpc::Channel> channel, Callbacks callbacks)
    : callbacks_(std::move(callbacks)), stub_(v1::AgentService::NewStub(std::move(channel))) {}

std::shared_ptr<AgentStream> AgentStream::Open(std::shared_ptr<grpc::Channel> channel, v1::AgentMessage hello, Callbacks callbacks) {
  const std::shared_ptr<AgentStream> stream(new AgentStream(std::move(channel), std::move(callbacks)));
  stream->self_ = stream;
  stream->stub_->async()->Connect(&stream->context_, stream.get());
  // Held until nothing is read any more: Send may start a write at any time before.
  stream->AddHold();
  stream->StartRead(&stream->incoming_);
  stream->Send(std::move(hello));
  stream->StartCall();
  return stream;
}

void AgentStream::Send(v1::AgentMessage message) {
  MutexLock lock(&mutex_);
  if (broken_) return;
  outgoing_bytes_ += message.ByteSizeLong();
  outgoing_.push_back(std::move(message));
  if (outgoing_bytes_ > kMaxQueuedBytes) return context_.TryCancel();
  WriteNext();
}

void AgentStream::WriteNext() {
  if (writing_ || broken_ || outgoing_.empty()) return;
  writing_ = true;
  StartWrite(&outgoing_.front());
}

void AgentStream::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  writing_ = false;
  outgoing_bytes_ -= outgoing_.front().ByteSizeLong();
  outgoing_.pop_front();
  if (ok) WriteNext();
}

void AgentStream::OnReadDone(bool ok) {
  if (ok) {
    callbacks_.on_message(std::exchange(incoming_, v1::SchedulerMessage()));
    return StartRead(&incoming_);
  }
  {
    MutexLock lock(&mutex_);
    broken_ = true;
  }
  RemoveHold();
}

void AgentStream::OnDone(const grpc::Status& status) {
  const auto on_end = callbacks_.on_end;  // outlives this
  on_end(absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message()), std::move(self_));
}

}  // namespace closeknit
