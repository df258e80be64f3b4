// One StreamLogs call: asks agents for the next bytes of each rank, a few ranks at a time, and writes them as they come.
//
// What is in memory is bounded: kWindow chunks of kChunkBytes, asked for or waiting to be written.
#ifndef CLOSEKNIT_SCHEDULER_LOG_STREAM_H_
#define CLOSEKNIT_SCHEDULER_LOG_STREAM_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "closeknit/v1/logs.pb.h"
#include "proto/base/mutex.h"
#include "scheduler/agent_sessions.h"
#include "scheduler/read_model.h"

namespace closeknit {

class LogStream : public grpc::ServerWriteReactor<grpc::ByteBuffer>, public JobWatcher {
 public:
  static constexpr size_t kWindow = 128;
  static constexpr uint32_t kChunkBytes = 64 << 10;

  LogStream(ReadModel* model, AgentSessions* sessions, v1::StreamLogsRequest request);
  // `self` is held until gRPC is done with the call.
  void Begin(std::shared_ptr<LogStream> self);

  void Changed(JobId job) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  struct RankLog {
    uint32_t rank = 0;
    std::string node;
    uint64_t offset = 0;  // of the next byte
    bool begun = false;   // something was read: tail_lines is done with
    bool done = false;
    int misses = 0;  // of its host, in a row
  };

  // Takes up the attempt that is to be shown now, if there is one.
  void TakeAttempt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShowAttempt(const v1::Job& job, const v1::Attempt& attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks and writes whatever can be.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Ask(size_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Receive(uint32_t attempt, size_t index, absl::StatusOr<v1::LogData> data);
  void TakeData(RankLog& log, size_t index, const v1::LogData& data) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The host does not answer, or has no such log (yet).
  void Miss(RankLog& log, size_t index, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishRank(RankLog& log) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnAttemptShown() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RetryLater() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnRetry();
  void FinishWith(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AttemptIsOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ReadModel* const model_;
  AgentSessions* const sessions_;
  const v1::StreamLogsRequest request_;

  Mutex mutex_;                                   // agents' answers, changes of the job and completions of writes come on different threads
  uint32_t attempt_ ABSL_GUARDED_BY(mutex_) = 0;  // being shown; 0: none yet
  std::vector<RankLog> logs_ ABSL_GUARDED_BY(mutex_);  // of that attempt
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;            // not done
  std::deque<size_t> to_ask_ ABSL_GUARDED_BY(mutex_);
  std::deque<size_t> to_retry_ ABSL_GUARDED_BY(mutex_);
  size_t asked_ ABSL_GUARDED_BY(mutex_) = 0;  // answers that are on the way
  std::deque<std::pair<size_t, v1::StreamLogsResponse>> to_write_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;  // for the job to change
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool alarm_set_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<std::string> unreachable_ ABSL_GUARDED_BY(mutex_);
  grpc::ByteBuffer message_ ABSL_GUARDED_BY(mutex_);
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<LogStream> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_LOG_STREAM_H_
