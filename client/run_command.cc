#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/commands.h"
#include "client/logs_command.h"
#include "proto/base/proto_time.h"

namespace closeknit {
namespace {

constexpr absl::Duration kReconnectPause = absl::Seconds(1);

// Ctrl-C and SIGTERM become a wait of one thread; created before any other thread, which inherit the blocked signals.
class InterruptWatch {
 public:
  InterruptWatch() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }

  // Calls `on_first` at the first signal; at the second one leaves the process. The thread ends with the process.
  void Start(std::function<void()> on_first) {
    std::thread([signals = signals_, on_first = std::move(on_first)] {
      int signal = 0;
      sigwait(&signals, &signal);
      on_first();
      sigwait(&signals, &signal);
      std::_Exit(kInterrupted);
    }).detach();
  }

 private:
  sigset_t signals_;
};

// One line on a terminal that is written over as long as nothing else is printed.
class ProgressLine {
 public:
  explicit ProgressLine(const Output& output) : output_(output), started_(absl::Now()) {}
  ~ProgressLine() { Clear(); }
  void Show(const v1::Job& job, uint32_t queue_position) {
    if (!output_.progress) return;
    std::string text = absl::StrCat("job ", job.job_id(), " is ", StateName(job.state()), ", ", ClockDuration(absl::Now() - started_));
    if (queue_position > 0) absl::StrAppend(&text, ", number ", queue_position, " in the queue");
    if (!job.reason().empty()) absl::StrAppend(&text, ": ", Printable(job.reason()));
    *output_.err << "\r\x1b[K" << text << std::flush;
    shown_ = true;
  }
  void Clear() {
    if (shown_) *output_.err << "\r\x1b[K" << std::flush;
    shown_ = false;
  }

 private:
  const Output& output_;
  const absl::Time started_;
  bool shown_ = false;
};

// Reads updates of the job until `enough` says so or the job has ended; goes on across restarts of the scheduler.
template <typename Enough>
absl::StatusOr<v1::Job> Watch(Session& session, uint64_t job_id, ProgressLine* progress, Enough enough) {
  v1::WatchJobsRequest request;
  request.add_job_ids(job_id);
  for (int failures = 0;;) {
    grpc::ClientContext context;
    const auto reader = session.connection->jobs().WatchJobs(&context, request);
    v1::WatchJobsResponse update;
    while (reader->Read(&update)) {
      failures = 0;
      if (HasEnded(update.job().state()) || enough(update.job())) {
        context.TryCancel();
        return update.job();
      }
      progress->Show(update.job(), update.queue_position());
    }
    const absl::Status status = FromGrpc(reader->Finish());
    if (!absl::IsUnavailable(status) || ++failures > 60) {
      return status.ok() ? absl::InternalError("the scheduler ended the watch before the job") : session.connection->Explained(status);
    }
    absl::SleepFor(kReconnectPause);
  }
}

// Follows the logs of all ranks until the job has ended. A broken stream is taken up again where each rank was.
void FollowLogs(Session& session, uint64_t job_id, LogWriter* writer) {
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> written;  // (attempt, rank) -> offset of the next byte
  for (int failures = 0; failures < 60; ++failures) {
    v1::StreamLogsRequest request;
    request.set_job_id(job_id);
    request.set_follow(true);
    grpc::ClientContext context;
    const auto reader = session.connection->logs().StreamLogs(&context, request);
    v1::StreamLogsResponse chunk;
    while (reader->Read(&chunk)) {
      uint64_t& next = written[{chunk.attempt(), chunk.rank()}];
      const uint64_t end = chunk.offset() + chunk.data().size();
      if (chunk.offset() < next) chunk.mutable_data()->erase(0, std::min<uint64_t>(next - chunk.offset(), chunk.data().size()));
      next = std::max(next, end);
      writer->Write(chunk);
      failures = 0;
    }
    if (!absl::IsUnavailable(FromGrpc(reader->Finish()))) return;
    absl::SleepFor(kReconnectPause);
  }
}

int JobExitCode(const v1::Job& job) {
  switch (job.state()) {
    case v1::JOB_STATE_COMPLETED:
      return kOk;
    case v1::JOB_STATE_CANCELLED:
      return kInterrupted;
    case v1::JOB_STATE_TIMED_OUT:
      return kTimedOut;
    default:
      break;
  }
  const v1::ExitVerdict& verdict = job.verdict();
  if (verdict.signal() != 0) return 128 + verdict.signal();
  return verdict.exit_code() != 0 ? verdict.exit_code() : kFailed;
}

}  // namespace

int Run(Session& session, const SubmitOptions& options) {
  InterruptWatch interrupts;
  const Output& output = session.output;
  std::vector<std::string> warnings;
  const auto request = BuildSubmitRequest(options, &warnings);
  for (const std::string& warning : warnings) *output.err << "knit: warning: " << warning << "\n";
  if (!request.ok()) return Fail(output, request.status());
  const auto submitted = session.connection->Call(session.connection->jobs(), &v1::JobService::Stub::SubmitJob, *request);
  if (!submitted.ok()) return Fail(output, submitted.status());
  if (submitted->tasks() > 1) return Fail(output, absl::InvalidArgumentError("--array: `knit run` follows one job; use `knit submit`"));
  const uint64_t job_id = submitted->job_id();
  interrupts.Start([&session, job_id] {
    v1::CancelJobRequest cancel;
    cancel.add_job_ids(job_id);
    cancel.set_user(CallerName());
    const auto cancelled = session.connection->Call(session.connection->jobs(), &v1::JobService::Stub::CancelJob, cancel);
    *session.output.err << "\nknit: "
                        << (cancelled.ok() ? absl::StrCat("cancelling job ", job_id) : std::string(cancelled.status().message()))
                        << "; again to leave at once\n";
  });

  ProgressLine progress(output);
  auto job = Watch(session, job_id, &progress, [](const v1::Job& update) { return update.state() == v1::JOB_STATE_RUNNING; });
  progress.Clear();
  if (!job.ok()) return Fail(output, job.status());
  if (job->has_attempt()) {
    const uint32_t ranks = job->spec().nodes() * std::max({job->spec().ranks_per_node(), job->spec().gpus_per_node(), 1u});
    LogWriter writer(output.out, ranks > 1);
    FollowLogs(session, job_id, &writer);
    writer.Finish();
    job = Watch(session, job_id, &progress, [](const v1::Job&) { return false; });
    progress.Clear();
    if (!job.ok()) return Fail(output, job.status());
  }
  if (job->state() != v1::JOB_STATE_COMPLETED) {
    *output.err << "knit: job " << job_id << " " << StateName(job->state()) << ": " << VerdictText(job->verdict()) << "\n";
  }
  return JobExitCode(*job);
}

}  // namespace closeknit
