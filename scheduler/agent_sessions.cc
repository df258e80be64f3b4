#include "scheduler/agent_sessions.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "scheduler/agent_stream.h"

namespace closeknit {

AgentSessions::AgentSessions(CommitLoop* loop, absl::Duration agent_timeout) : loop_(loop), agent_timeout_(agent_timeout) {}

AgentSessions::~AgentSessions() { Stop(); }

void AgentSessions::Start() {
  watch_ = std::thread([this] { WatchSilence(); });
}

void AgentSessions::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  stop_.SignalAll();
  if (watch_.joinable()) watch_.join();
  CloseAll(absl::UnavailableError("the scheduler is stopping"));
}

grpc::ServerBidiReactor<v1::AgentMessage, v1::SchedulerMessage>* AgentSessions::Connect(grpc::CallbackServerContext* context) {
  std::shared_ptr<AgentStream> stream;
  bool stopping = false;
  {
    MutexLock lock(&mutex_);
    const SessionId id = next_session_++;
    stream = std::make_shared<AgentStream>(this, loop_, id, context->peer());
    stopping = stopping_;
    if (!stopping) streams_.emplace(id, stream);
  }
  stream->Begin(stream);
  if (stopping) stream->Close(absl::UnavailableError("the scheduler is stopping"));
  return stream.get();
}

std::shared_ptr<AgentStream> AgentSessions::Find(SessionId session) const {
  MutexLock lock(&mutex_);
  const auto found = streams_.find(session);
  return found == streams_.end() ? nullptr : found->second;
}

void AgentSessions::Forget(SessionId session, const std::string& node) {
  MutexLock lock(&mutex_);
  streams_.erase(session);
  const auto found = welcomed_.find(node);
  if (found != welcomed_.end() && found->second == session) welcomed_.erase(found);
}

void AgentSessions::Send(SessionId session, v1::SchedulerMessage message) {
  const std::shared_ptr<AgentStream> stream = Find(session);
  if (stream == nullptr) return;
  if (message.has_welcome()) {
    const std::string node = stream->node();
    MutexLock lock(&mutex_);
    if (streams_.contains(session)) welcomed_[node] = session;
  }
  stream->Send(std::move(message));
}

void AgentSessions::Close(SessionId session, const absl::Status& status) {
  const std::shared_ptr<AgentStream> stream = Find(session);
  if (stream == nullptr) return;
  Log(LogLevel::kWarning, "agent's stream closed",
      {{"node", stream->node()}, {"peer", stream->peer()}, {"why", std::string(status.message())}});
  stream->Close(status);
}

void AgentSessions::CloseAll(const absl::Status& status) {
  std::vector<std::shared_ptr<AgentStream>> streams;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, stream] : streams_) streams.push_back(stream);
  }
  for (const auto& stream : streams) stream->Close(status);
}

absl::Status AgentSessions::ReadLog(const std::string& node, v1::ReadLog request, LogAnswer answer) {
  std::shared_ptr<AgentStream> stream;
  {
    MutexLock lock(&mutex_);
    const auto session = welcomed_.find(node);
    if (session != welcomed_.end()) {
      const auto found = streams_.find(session->second);
      if (found != streams_.end()) stream = found->second;
    }
  }
  if (stream == nullptr) return absl::UnavailableError(absl::StrCat(node, ": no agent is connected"));
  return stream->ReadLog(std::move(request), std::move(answer));
}

size_t AgentSessions::connected() const {
  MutexLock lock(&mutex_);
  return welcomed_.size();
}

void AgentSessions::WatchSilence() {
  const absl::Duration interval = agent_timeout_ / 8;
  auto expected = AgentStream::Clock::now();
  while (true) {
    std::vector<std::shared_ptr<AgentStream>> streams;
    {
      MutexLock lock(&mutex_);
      if (!stopping_) stop_.WaitFor(&mutex_, interval);
      if (stopping_) return;
      for (const auto& [id, stream] : streams_) streams.push_back(stream);
    }
    const auto now = AgentStream::Clock::now();
    // This process itself was stopped or starved: what agents said lies unread, so their silence proves nothing.
    const bool overslept = now - expected > absl::ToChronoNanoseconds(agent_timeout_ / 2);
    expected = now + absl::ToChronoNanoseconds(interval);
    for (const auto& stream : streams) {
      if (overslept) stream->Excuse();
      if (now - stream->last_heard() <= absl::ToChronoNanoseconds(agent_timeout_)) continue;
      const std::string why = absl::StrCat("its agent was silent for ", absl::FormatDuration(agent_timeout_));
      stream->ReportEnd(why);
      stream->Close(absl::UnavailableError(why));
    }
  }
}

}  // namespace closeknit
