// The agents' streams: messages in become events, commands go out in order, silence ends a stream.
#ifndef CLOSEKNIT_SCHEDULER_AGENT_SESSIONS_H_
#define CLOSEKNIT_SCHEDULER_AGENT_SESSIONS_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "closeknit/v1/agent.grpc.pb.h"
#include "proto/base/mutex.h"
#include "scheduler/commit_loop.h"

namespace closeknit {

class AgentStream;

class AgentSessions : public v1::AgentService::CallbackService {
 public:
  using LogAnswer = std::function<void(absl::StatusOr<v1::LogData>)>;

  // `agent_timeout`: a stream from which nothing came for that long is ended. `loop` outlives this and every stream.
  AgentSessions(CommitLoop* loop, absl::Duration agent_timeout);
  ~AgentSessions() override;

  // Starts and ends the watch over silence. Stop also ends all streams.
  void Start();
  void Stop();

  // From the commit loop. A session that is gone is no error: its end is on the way as an event.
  void Send(SessionId session, v1::SchedulerMessage message);
  void Close(SessionId session, const absl::Status& status);
  void CloseAll(const absl::Status& status);

  // Asks the host's agent for a part of a log; `request.request_id` is set here. OK: `answer` is called once, later, on any thread: with
  // the data, or kUnavailable when the stream ends first. kUnavailable: no agent is connected, and `answer` is dropped.
  absl::Status ReadLog(const std::string& node, v1::ReadLog request, LogAnswer answer);

  size_t connected() const;  // agents that were welcomed

  // The service: one stream an agent.
  grpc::ServerBidiReactor<v1::AgentMessage, v1::SchedulerMessage>* Connect(grpc::CallbackServerContext* context) override;

 private:
  friend class AgentStream;
  std::shared_ptr<AgentStream> Find(SessionId session) const;
  void Forget(SessionId session, const std::string& node);
  void WatchSilence();

  CommitLoop* const loop_;
  const absl::Duration agent_timeout_;
  std::thread watch_;

  mutable Mutex mutex_;  // the loop, gRPC's threads and the watch over silence meet here
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  SessionId next_session_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<SessionId, std::shared_ptr<AgentStream>> streams_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, SessionId> welcomed_ ABSL_GUARDED_BY(mutex_);  // by node
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_AGENT_SESSIONS_H_
