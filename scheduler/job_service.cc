#include "scheduler/job_service.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "proto/base/proto_time.h"
#include "scheduler/core/job_entry.h"
#include "scheduler/paging.h"
#include "scheduler/service_call.h"
#include "scheduler/watch_stream.h"

namespace closeknit {
namespace {

constexpr int kMaxWatched = 10'000;

// What a ListJobs asks for, ready to be tried on each job.
class JobFilter {
 public:
  static absl::StatusOr<JobFilter> From(const v1::ListJobsRequest& request) {
    JobFilter filter(request);
    ASSIGN_OR_RETURN(filter.nodes_, HostNames(request.nodes()));
    return filter;
  }

  bool Matches(const v1::Job& job) const {
    if (!states_.empty() && !states_.contains(job.state())) return false;
    if (!users_.empty() && !users_.contains(job.user())) return false;
    if (!ids_.empty() && !ids_.contains(job.job_id()) && (job.array_job_id() == 0 || !ids_.contains(job.array_job_id()))) return false;
    if (!name_.empty() && job.spec().name() != name_) return false;
    if (!partition_.empty() && job.spec().partition() != partition_) return false;
    if (nodes_.empty()) return true;
    const auto& hosts = job.attempt().placement().hosts();
    return std::any_of(hosts.begin(), hosts.end(), [this](const std::string& host) { return nodes_.contains(host); });
  }

 private:
  explicit JobFilter(const v1::ListJobsRequest& request)
      : states_(request.states().begin(), request.states().end()),
        users_(request.users().begin(), request.users().end()),
        ids_(request.job_ids().begin(), request.job_ids().end()),
        name_(request.name()),
        partition_(request.partition()) {}

  absl::flat_hash_set<int> states_;
  absl::flat_hash_set<std::string> users_;
  absl::flat_hash_set<uint64_t> ids_;
  std::string name_, partition_;
  absl::flat_hash_set<std::string> nodes_;
};

absl::Status UnknownJob(JobId id) { return NotFound("JOB_NOT_FOUND", absl::StrCat("no job ", id)); }

class JobWatchStream : public WatchStream<JobId, JobWatcher> {
 public:
  JobWatchStream(const ReadModel* model, const std::vector<JobId>& jobs)
      : model_(model), open_(jobs.begin(), jobs.end()), all_(jobs.empty()) {}

 protected:
  bool Fill(const JobId& id, grpc::ByteBuffer* message, bool* last) override {
    const std::optional<JobVersion> version = model_->FindJob(id);
    if (!version.has_value() || (!all_ && !open_.contains(id))) return false;
    v1::WatchJobsResponse response;
    *response.mutable_job() = *version->job;
    response.set_queue_position(version->queue_position);
    *response.mutable_time() = ToProtoTime(version->time);
    *message = ToByteBuffer(response);
    if (!all_ && HasEnded(*version->job)) open_.erase(id);
    *last = !all_ && open_.empty();
    return true;
  }

 private:
  const ReadModel* const model_;
  absl::flat_hash_set<JobId> open_;  // that have not ended, of those asked for
  const bool all_;
};

}  // namespace

absl::StatusOr<v1::ListJobsResponse> ListJobs(const ReadModel& model, const v1::ListJobsRequest& request) {
  ASSIGN_OR_RETURN(const JobFilter filter, JobFilter::From(request));
  ASSIGN_OR_RETURN(const uint32_t page_size, PageSize(request.page_size()));
  JobId before = std::numeric_limits<JobId>::max();
  if (!request.page_token().empty() && !absl::SimpleAtoi(request.page_token(), &before)) {
    return InvalidField("page_token", "is not one that ListJobs gave");
  }
  v1::ListJobsResponse response;
  uint32_t total = 0;
  bool more = false;
  model.VisitJobs(std::numeric_limits<JobId>::max(), [&](const std::shared_ptr<const v1::Job>& job) {
    if (!filter.Matches(*job)) return true;
    ++total;
    if (job->job_id() >= before) return true;
    if (static_cast<uint32_t>(response.jobs_size()) < page_size) {
      *response.add_jobs() = *job;
    } else {
      more = true;
    }
    return true;
  });
  response.set_total_size(total);
  if (more) response.set_next_page_token(absl::StrCat(response.jobs(response.jobs_size() - 1).job_id()));
  return response;
}

grpc::ServerUnaryReactor* JobService::SubmitJob(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                                grpc::ByteBuffer* response) {
  return AskCore<v1::SubmitJobResponse, closeknit::SubmitJob>(loop_, context, request, response);
}

grpc::ServerUnaryReactor* JobService::CancelJob(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                                grpc::ByteBuffer* response) {
  return AskCore<v1::CancelJobResponse, CancelJobs>(loop_, context, request, response);
}

grpc::ServerUnaryReactor* JobService::GetJob(grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
                                             grpc::ByteBuffer* response) {
  v1::GetJobRequest request;
  if (const absl::Status status = ParseRequest(*bytes, &request); !status.ok()) return FinishNow(context, status);
  const std::optional<JobVersion> version = model_->FindJob(request.job_id());
  if (!version.has_value()) return FinishNow(context, UnknownJob(request.job_id()));
  return FinishNow(context, response, *version->job);
}

grpc::ServerUnaryReactor* JobService::ListJobs(grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
                                               grpc::ByteBuffer* response) {
  v1::ListJobsRequest request;
  if (const absl::Status status = ParseRequest(*bytes, &request); !status.ok()) return FinishNow(context, status);
  const absl::StatusOr<v1::ListJobsResponse> jobs = closeknit::ListJobs(*model_, request);
  if (!jobs.ok()) return FinishNow(context, jobs.status());
  return FinishNow(context, response, *jobs);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* JobService::WatchJobs(grpc::CallbackServerContext*, const grpc::ByteBuffer* bytes) {
  v1::WatchJobsRequest request;
  absl::Status status = ParseRequest(*bytes, &request);
  if (status.ok() && request.job_ids_size() > kMaxWatched) {
    status = InvalidField("job_ids", absl::StrCat(request.job_ids_size(), " are too many; at most ", kMaxWatched, ", or none for all"));
  }
  for (const uint64_t id : request.job_ids()) {
    if (status.ok() && !model_->FindJob(id).has_value()) status = UnknownJob(id);
  }
  if (!status.ok()) return new FailedStream(status);
  std::vector<JobId> jobs(request.job_ids().begin(), request.job_ids().end());
  auto stream = std::make_shared<JobWatchStream>(model_, jobs);
  stream->OwnSelf(stream);
  model_->Watch(std::weak_ptr<JobWatcher>(stream), jobs);
  if (jobs.empty()) {
    model_->VisitJobs(std::numeric_limits<JobId>::max(), [&](const std::shared_ptr<const v1::Job>& job) {
      jobs.push_back(job->job_id());
      return true;
    });
  }
  for (const JobId id : jobs) stream->Changed(id);
  return stream.get();
}

}  // namespace closeknit
