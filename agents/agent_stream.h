// One stream to the scheduler over gRPC's callback API. What comes in is handed to the loop's thread.
#ifndef CLOSEKNIT_AGENTS_AGENT_STREAM_H_
#define CLOSEKNIT_AGENTS_AGENT_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "closeknit/v1/agent.grpc.pb.h"
#include "proto/base/mutex.h"

namespace closeknit {

// Messages may wait for a scheduler that does not read; beyond this many bytes the stream is given up.
inline constexpr size_t kMaxQueuedBytes = 64 << 20;

// Makes a channel of its own connection, which no other channel of the process shares.
std::shared_ptr<grpc::Channel> DialScheduler(const std::string& target);

// Thread-safe.
class AgentStream : public grpc::ClientBidiReactor<v1::AgentMessage, v1::SchedulerMessage> {
 public:
  // Called by gRPC's threads; on_end once, and last, with the stream itself: neither it nor its channel may be destroyed by one of gRPC's
  // threads (gRPC 1.51 ends its threads with the last channel, and one that ends itself aborts the process).
  struct Callbacks {
    std::function<void(v1::SchedulerMessage)> on_message;
    std::function<void(absl::Status, std::shared_ptr<AgentStream>)> on_end;
  };
  static std::shared_ptr<AgentStream> Open(std::shared_ptr<grpc::Channel> channel, v1::AgentMessage hello, Callbacks callbacks);

  void Send(v1::AgentMessage message);
  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  AgentStream(std::shared_ptr<grpc::Channel> channel, Callbacks callbacks);
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Callbacks callbacks_;
  const std::unique_ptr<v1::AgentService::Stub> stub_;
  grpc::ClientContext context_;
  v1::SchedulerMessage incoming_;
  std::shared_ptr<AgentStream> self_;  // while gRPC uses it
  Mutex mutex_;                        // Send is called by the loop, OnWriteDone by gRPC
  std::deque<v1::AgentMessage> outgoing_ ABSL_GUARDED_BY(mutex_);
  size_t outgoing_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_AGENT_STREAM_H_
