#include "agents/agent_stream.h"

#include <utility>

namespace closeknit {
namespace {

// A channel for each stream: its own connection, without the back-off that gRPC's channels share.
std::shared_ptr<grpc::Channel> Dial(const std::string& target) {
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

}  // namespace

AgentStream::AgentStream(const std::string& target, Callbacks callbacks)
    : callbacks_(std::move(callbacks)), stub_(v1::AgentService::NewStub(Dial(target))) {}

std::shared_ptr<AgentStream> AgentStream::Open(const std::string& target, v1::AgentMessage hello, Callbacks callbacks) {
  const std::shared_ptr<AgentStream> stream(new AgentStream(target, std::move(callbacks)));
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
  callbacks_.on_end(absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message()));
  const std::shared_ptr<AgentStream> last = std::move(self_);
}

}  // namespace closeknit
