// One agent's stream. Used by AgentSessions alone.
#ifndef CLOSEKNIT_SCHEDULER_AGENT_STREAM_H_
#define CLOSEKNIT_SCHEDULER_AGENT_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "closeknit/v1/agent.pb.h"
#include "proto/base/mutex.h"
#include "scheduler/agent_sessions.h"

namespace closeknit {

class AgentStream : public grpc::ServerBidiReactor<v1::AgentMessage, v1::SchedulerMessage> {
 public:
  using Clock = std::chrono::steady_clock;

  AgentStream(AgentSessions* sessions, CommitLoop* loop, SessionId id, std::string peer);
  void Begin(std::shared_ptr<AgentStream> self);

  void Send(v1::SchedulerMessage message);
  // Ends the stream after what was sent already; nothing is sent after.
  void Close(const absl::Status& status);
  absl::Status ReadLog(v1::ReadLog request, AgentSessions::LogAnswer answer);

  // The core need not wait for gRPC to notice that the stream is over.
  void ReportEnd(const std::string& why);

  Clock::time_point last_heard() const { return Clock::time_point(Clock::duration(last_heard_.load(std::memory_order_relaxed))); }
  void Excuse() { last_heard_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed); }
  std::string node() const;
  const std::string& peer() const { return peer_; }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  static constexpr size_t kMaxQueuedBytes = 256 << 20;  // a stream that takes no more than this is closed

  void Receive(v1::AgentMessage message);
  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnswerLog(const v1::LogData& data);
  void FailLogs(const absl::Status& status);

  AgentSessions* const sessions_;
  CommitLoop* const loop_;
  const SessionId id_;
  const std::string peer_;
  std::atomic<Clock::rep> last_heard_;
  v1::AgentMessage incoming_;  // belongs to the read in flight

  mutable Mutex mutex_;                                                // the loop sends, gRPC reports completions
  std::string node_ ABSL_GUARDED_BY(mutex_);                           // from Hello; empty before
  std::deque<v1::SchedulerMessage> outgoing_ ABSL_GUARDED_BY(mutex_);  // front: being written, if writing_
  size_t outgoing_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool end_reported_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status close_status_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_log_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<uint64_t, AgentSessions::LogAnswer> logs_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<AgentStream> self_ ABSL_GUARDED_BY(mutex_);  // until gRPC is done with it
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_AGENT_STREAM_H_
