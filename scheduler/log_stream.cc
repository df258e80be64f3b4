#include "scheduler/log_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "proto/base/proto_time.h"
#include "scheduler/core/job_entry.h"
#include "scheduler/grpc_status.h"

namespace closeknit {
namespace {

constexpr absl::Duration kRetryPause = absl::Milliseconds(200);  // for hosts that cannot be reached, and logs that are not there yet
constexpr int kMissesAfterEnd = 25;                              // tries after an attempt's end before its host counts as unreachable
constexpr absl::Duration kLongWait = absl::Seconds(10);          // of one question for new bytes, where every rank can be asked at once
constexpr absl::Duration kShortWait = absl::Milliseconds(100);   // where ranks take turns

const v1::Attempt* FindAttempt(const v1::Job& job, uint32_t number) {
  if (job.attempt().number() == number) return &job.attempt();
  for (const v1::Attempt& past : job.past_attempts()) {
    if (past.number() == number) return &past;
  }
  return nullptr;
}

// Until START hosts may still be replaced.
bool HostsAreFinal(const v1::Attempt& attempt) { return attempt.has_start_time() || attempt.has_end_time() || attempt.has_verdict(); }

}  // namespace

LogStream::LogStream(ReadModel* model, AgentSessions* sessions, v1::StreamLogsRequest request)
    : model_(model), sessions_(sessions), request_(std::move(request)) {}

void LogStream::Begin(std::shared_ptr<LogStream> self) {
  model_->Watch(std::weak_ptr<JobWatcher>(self), {request_.job_id()});
  MutexLock lock(&mutex_);
  self_ = std::move(self);
  TakeAttempt();
}

void LogStream::Changed(JobId) {
  MutexLock lock(&mutex_);
  if (waiting_ && !finished_) TakeAttempt();
}

void LogStream::TakeAttempt() {
  waiting_ = false;
  const std::optional<JobVersion> version = model_->FindJob(request_.job_id());
  if (!version.has_value()) return FinishWith(absl::OkStatus());  // purged
  const v1::Job& job = *version->job;
  // The attempt asked for, or the next one after that which was shown last.
  const v1::Attempt* attempt = nullptr;
  if (request_.attempt() != 0) {
    attempt = FindAttempt(job, request_.attempt());
  } else if (attempt_ == 0) {
    attempt = job.attempt().number() == 0 ? nullptr : &job.attempt();
  } else {
    for (uint32_t number = attempt_ + 1; attempt == nullptr && number <= job.attempt().number(); ++number)
      attempt = FindAttempt(job, number);
  }
  if (attempt != nullptr && HostsAreFinal(*attempt)) return ShowAttempt(job, *attempt);
  if (!request_.follow() || (HasEnded(job) && attempt == nullptr)) return FinishWith(absl::OkStatus());
  waiting_ = true;
}

void LogStream::ShowAttempt(const v1::Job& job, const v1::Attempt& attempt) {
  attempt_ = attempt.number();
  logs_.clear();
  const uint32_t per_host = std::max<uint32_t>(job.spec().ranks_per_node(), 1);
  const bool one_a_host = job.spec().entry() == v1::ENTRY_MODE_PER_HOST;
  const auto wanted = [&](uint32_t rank) {
    return request_.ranks().empty() || std::find(request_.ranks().begin(), request_.ranks().end(), rank) != request_.ranks().end();
  };
  // O(ranks of the gang); with a list of ranks, that times its length.
  for (int slot = 0; slot < attempt.placement().hosts_size(); ++slot) {
    for (uint32_t local = 0; local < (one_a_host ? 1 : per_host); ++local) {
      const uint32_t rank = static_cast<uint32_t>(slot) * per_host + local;
      if (wanted(rank)) logs_.push_back({.rank = rank, .node = attempt.placement().hosts(slot)});
    }
  }
  open_ = logs_.size();
  to_ask_.clear();
  to_retry_.clear();
  for (size_t i = 0; i < logs_.size(); ++i) to_ask_.push_back(i);
  if (open_ == 0) return OnAttemptShown();
  Pump();
}

void LogStream::Pump() {
  if (finished_) return;
  while (!to_ask_.empty() && asked_ + to_write_.size() < kWindow) {
    const size_t index = to_ask_.front();
    to_ask_.pop_front();
    Ask(index);
  }
  if (writing_ || to_write_.empty()) return;
  message_ = ToByteBuffer(to_write_.front().second);
  writing_ = true;
  StartWrite(&message_);
}

void LogStream::Ask(size_t index) {
  RankLog& log = logs_[index];
  ++asked_;
  v1::ReadLog request;
  request.mutable_id()->set_job_id(request_.job_id());
  request.mutable_id()->set_attempt(attempt_);
  request.set_rank(log.rank);
  request.set_offset(log.offset);
  request.set_max_bytes(kChunkBytes);
  if (!log.begun) request.set_tail_lines(request_.tail_lines());
  if (request_.follow()) *request.mutable_wait() = ToProtoDuration(open_ <= kWindow ? kLongWait : kShortWait);
  const absl::Status asked = sessions_->ReadLog(
      log.node, std::move(request),
      [self = self_, attempt = attempt_, index](absl::StatusOr<v1::LogData> data) { self->Receive(attempt, index, std::move(data)); });
  if (asked.ok()) return;
  --asked_;
  Miss(log, index, asked);
}

void LogStream::Receive(uint32_t attempt, size_t index, absl::StatusOr<v1::LogData> data) {
  MutexLock lock(&mutex_);
  --asked_;
  if (finished_ || attempt != attempt_) return;
  RankLog& log = logs_[index];
  if (!data.ok()) {
    Miss(log, index, data.status());
  } else if (!data->error().empty()) {
    Miss(log, index, absl::NotFoundError(data->error()));
  } else {
    TakeData(log, index, *data);
  }
  Pump();
}

void LogStream::TakeData(RankLog& log, size_t index, const v1::LogData& data) {
  log.misses = 0;
  const bool at_end = data.rank_ended() || (data.data().empty() && !request_.follow());
  if (data.data().empty() && !data.rank_ended()) {
    if (at_end) return FinishRank(log);
    log.begun = log.begun || data.offset() > 0;
    log.offset = std::max(log.offset, data.offset());
    to_ask_.push_back(index);
    return;
  }
  v1::StreamLogsResponse response;
  response.set_rank(log.rank);
  response.set_attempt(attempt_);
  response.set_node(log.node);
  response.set_offset(data.offset());
  response.set_data(data.data());
  response.set_rank_ended(data.rank_ended());
  if (data.offset() > log.offset && (log.begun || request_.tail_lines() == 0)) response.set_lost_bytes(data.offset() - log.offset);
  log.offset = data.offset() + data.data().size();
  log.begun = true;
  log.done = at_end;
  to_write_.emplace_back(index, std::move(response));
}

void LogStream::Miss(RankLog& log, size_t index, const absl::Status& why) {
  const bool unreachable = absl::IsUnavailable(why);
  ++log.misses;
  // While the attempt lasts a reader that follows waits for the host, or for the log. After it: a little, for an agent that starts again.
  const bool wait = request_.follow() && (!AttemptIsOver() || (unreachable && log.misses < kMissesAfterEnd));
  if (wait) {
    to_retry_.push_back(index);
    return RetryLater();
  }
  if (unreachable) unreachable_.insert(log.node);
  FinishRank(log);
}

bool LogStream::AttemptIsOver() const {
  const std::optional<JobVersion> version = model_->FindJob(request_.job_id());
  if (!version.has_value() || HasEnded(*version->job)) return true;
  const v1::Attempt& now = version->job->attempt();
  return now.number() != attempt_ || now.has_end_time();
}

void LogStream::FinishRank(RankLog& log) {
  log.done = true;
  if (--open_ == 0) OnAttemptShown();
}

void LogStream::OnAttemptShown() {
  if (!to_write_.empty() || writing_) return;  // comes again when the last is written
  if (!request_.follow() || request_.attempt() != 0 || !unreachable_.empty()) {
    if (unreachable_.empty()) return FinishWith(absl::OkStatus());
    return FinishWith(
        absl::UnavailableError(absl::StrCat("no logs from ", absl::StrJoin(unreachable_, ", "), ": no agent is connected there")));
  }
  TakeAttempt();
}

void LogStream::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  writing_ = false;
  if (finished_) return;
  if (!ok) return FinishWith(absl::CancelledError("the reader is gone"));
  const size_t index = to_write_.front().first;
  to_write_.pop_front();
  RankLog& log = logs_[index];
  if (log.done) {
    --open_;
  } else {
    to_ask_.push_back(index);
  }
  if (open_ == 0) return OnAttemptShown();
  Pump();
}

void LogStream::RetryLater() {
  if (std::exchange(alarm_set_, true)) return;
  alarm_.Set(absl::ToChronoTime(absl::Now() + kRetryPause), [self = self_](bool) { self->OnRetry(); });
}

void LogStream::OnRetry() {
  MutexLock lock(&mutex_);
  alarm_set_ = false;
  if (finished_) return;
  for (const size_t index : to_retry_) to_ask_.push_back(index);
  to_retry_.clear();
  Pump();
}

void LogStream::FinishWith(const absl::Status& status) {
  if (std::exchange(finished_, true)) return;
  to_write_.clear();
  Finish(ToGrpc(status));
}

void LogStream::OnCancel() {
  MutexLock lock(&mutex_);
  FinishWith(absl::CancelledError("the reader is gone"));
}

void LogStream::OnDone() {
  std::shared_ptr<LogStream> self;  // dies after the lock
  MutexLock lock(&mutex_);
  self.swap(self_);
}

}  // namespace closeknit
