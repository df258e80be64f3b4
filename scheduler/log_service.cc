#include "scheduler/log_service.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/errors.h"
#include "proto/base/status_macros.h"
#include "scheduler/grpc_status.h"
#include "scheduler/log_stream.h"
#include "scheduler/watch_stream.h"

namespace closeknit {
namespace {

absl::Status Check(const v1::StreamLogsRequest& request, const ReadModel& model) {
  const std::optional<JobVersion> version = model.FindJob(request.job_id());
  if (!version.has_value()) return NotFound("JOB_NOT_FOUND", absl::StrCat("no job ", request.job_id()));
  const v1::Job& job = *version->job;
  const uint64_t ranks = uint64_t{job.spec().nodes()} * job.spec().ranks_per_node();
  for (int i = 0; i < request.ranks_size(); ++i) {
    if (request.ranks(i) >= ranks) {
      return InvalidField(absl::StrCat("ranks[", i, "]"),
                          absl::StrCat("job ", job.job_id(), " has no rank ", request.ranks(i), "; 0..", ranks - 1));
    }
  }
  if (request.attempt() > job.attempt().number()) {
    return InvalidField("attempt",
                        absl::StrCat("job ", job.job_id(), " has had ", job.attempt().number(), " attempts, not ", request.attempt()));
  }
  if (!request.follow() && job.attempt().number() == 0) {
    return Precondition("NOT_STARTED", absl::StrCat("job/", job.job_id()), "it has not started yet; follow its logs to wait for it");
  }
  return absl::OkStatus();
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* LogService::StreamLogs(grpc::CallbackServerContext*, const grpc::ByteBuffer* bytes) {
  v1::StreamLogsRequest request;
  absl::Status status = ParseRequest(*bytes, &request);
  if (status.ok()) status = Check(request, *model_);
  if (!status.ok()) return new FailedStream(status);
  auto stream = std::make_shared<LogStream>(model_, sessions_, std::move(request));
  LogStream* const raw = stream.get();
  raw->Begin(std::move(stream));
  return raw;
}

}  // namespace closeknit
