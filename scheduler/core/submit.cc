// A job comes in, or is told to go.
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/errors.h"
#include "proto/base/proto_time.h"
#include "proto/base/status_macros.h"
#include "scheduler/core/core_impl.h"
#include "scheduler/core/validate.h"
#include "scheduler/core/wire.h"

namespace closeknit {
namespace {

constexpr absl::Duration kQueueFullRetry = absl::Seconds(10);

absl::Status CheckArrayWeight(const v1::JobSpec& spec, size_t tasks) {
  const size_t bytes = spec.ByteSizeLong();
  if (bytes * tasks <= kMaxArrayBytes) return absl::OkStatus();
  return InvalidField("spec.array", absl::StrCat(tasks, " tasks of ", bytes, " bytes each; at most ", kMaxArrayBytes,
                                                 " bytes in all are accepted: put large files where the hosts can read them"));
}

}  // namespace

absl::StatusOr<v1::SubmitJobResponse> CoreImpl::Submit(const v1::SubmitJobRequest& request) {
  RETURN_IF_ERROR(ValidateSubmit(request));
  const std::string request_key = request.request_id().empty() ? "" : RequestKey(request.user(), request.request_id());
  const uint64_t fingerprint = request_key.empty() ? 0 : Fingerprint(DeterministicBytes(request.spec()));
  v1::SubmitJobResponse response;
  if (const auto known = requests_.find(request_key); !request_key.empty() && known != requests_.end()) {
    if (known->second.spec_fingerprint() != fingerprint) {
      return InvalidField("request_id", absl::StrCat("'", request.request_id(), "' is that of job ", known->second.job_id(),
                                                     ", which has another spec; a new request needs a new id"));
    }
    response.set_job_id(known->second.job_id());
    response.set_tasks(known->second.tasks());
    return response;
  }
  if (!view_.has_value()) return Precondition("NO_TOPOLOGY", "fabric", "no topology has been applied yet: knit topo apply FILE");

  ArraySpec array;
  if (!request.spec().array().empty()) {
    absl::StatusOr<ArraySpec> parsed = ParseArraySpec(request.spec().array(), config_.max_array_tasks);
    if (!parsed.ok()) return UnderField("spec", parsed.status());
    array = *std::move(parsed);
    RETURN_IF_ERROR(CheckArrayWeight(request.spec(), array.tasks.size()));
  }
  const int tasks = array.tasks.empty() ? 1 : static_cast<int>(array.tasks.size());
  RETURN_IF_ERROR(CheckDependencies(request.spec()));
  if (pending_ + tasks > config_.max_pending_jobs) {
    return RetryAfter(kQueueFullRetry, absl::StrCat("the queue is full: ", pending_, " jobs are pending, at most ",
                                                    config_.max_pending_jobs, " are accepted"));
  }
  v1::JobSpec spec = Normalized(request.spec());
  Shape* const shape = shapes_.Acquire(spec, 0, &*ideal_);
  if (absl::Status fits = CheckFits(*shape, spec); !fits.ok()) {
    shapes_.Release(shape);
    return fits;
  }
  shape->jobs += tasks - 1;

  const JobId first = meta_.next_job_id();
  if (!array.tasks.empty()) arrays_[first] = {.counts = {.tasks = tasks}, .at_once = array.at_once};
  for (int i = 0; i < tasks; ++i) {
    JobEntry& job = AddJob(i + 1 == tasks ? std::move(spec) : spec, request.user(), shape);
    if (!array.tasks.empty()) {
      job.job->set_array_job_id(first);
      job.job->set_array_task_id(array.tasks[i]);
    }
    if (i == 0) job.record.set_request_id(request.request_id());
    Note(Notice::Kind::kJobSubmitted, job, "", "");
    WatchDependencies(job);
    Enqueue(job);
  }
  response.set_job_id(first);
  response.set_tasks(tasks);
  if (!request_key.empty()) {
    v1::RequestRecord record;
    record.set_job_id(first);
    record.set_tasks(tasks);
    record.set_spec_fingerprint(fingerprint);
    effects_.writes.push_back({Table::kRequests, request_key, record.SerializeAsString()});
    requests_[request_key] = std::move(record);
  }
  return response;
}

absl::Status CoreImpl::CheckDependencies(const v1::JobSpec& spec) const {
  for (int i = 0; i < spec.dependencies_size(); ++i) {
    const JobId target = spec.dependencies(i).job_id();
    if (FindJob(target) != nullptr) continue;
    return InvalidField(absl::StrCat("spec.dependencies[", i, "].job_id"),
                        absl::StrCat("no job ", target, "; accepted are jobs that were submitted before and are still known"));
  }
  return absl::OkStatus();
}

absl::Status CoreImpl::CheckFits(const Shape& shape, const v1::JobSpec& spec) const {
  if (!shape.request.ok()) return UnderField("spec", shape.request.status());
  if (shape.fits_fabric.ok()) return absl::OkStatus();
  if (shape.fits_fabric.code() == absl::StatusCode::kInvalidArgument) return UnderField("spec", shape.fits_fabric);
  if (spec.hold_until_fits()) return absl::OkStatus();
  const std::optional<Unplaceable> why = GetUnplaceable(shape.fits_fabric);
  std::string text = absl::StrCat("can never fit: ", why.has_value() ? why->why : std::string(shape.fits_fabric.message()));
  if (why.has_value() && !why->nearest.empty()) absl::StrAppend(&text, "; what would fit: ", why->nearest);
  return Precondition("NEVER_FITS", "spec", text);
}

JobEntry& CoreImpl::AddJob(v1::JobSpec spec, const std::string& user, Shape* shape) {
  const JobId id = meta_.next_job_id();
  meta_.set_next_job_id(id + 1);
  meta_changed_ = true;
  auto owned = std::make_unique<JobEntry>();
  JobEntry& job = *owned;
  CHECK(jobs_.emplace(id, std::move(owned)).second) << "job " << id << " exists";
  job.id = id;
  job.shape = shape;
  job.job = std::make_shared<v1::Job>();
  job.changed = true;
  changed_jobs_.push_back(&job);
  job.job->set_job_id(id);
  *job.job->mutable_spec() = std::move(spec);
  job.job->set_user(user);
  job.job->set_state(v1::JOB_STATE_PENDING);
  *job.job->mutable_submit_time() = ToProtoTime(now_);
  job.record.set_queue_sequence(id);
  job.record.set_next_attempt(1);
  ++pending_;
  return job;
}

std::vector<JobEntry*> CoreImpl::JobsOf(JobId job_or_array) {
  std::vector<JobEntry*> jobs;
  const auto array = arrays_.find(job_or_array);
  const int count = array == arrays_.end() ? 1 : array->second.counts.tasks;
  for (int i = 0; i < count; ++i) {
    if (JobEntry* job = FindJob(job_or_array + i); job != nullptr) jobs.push_back(job);
  }
  return jobs;
}

absl::StatusOr<v1::CancelJobResponse> CoreImpl::Cancel(const v1::CancelJobRequest& request) {
  constexpr int kMaxJobs = 10'000;
  if (request.job_ids().empty() || request.job_ids_size() > kMaxJobs) {
    return InvalidField("job_ids", absl::StrCat(request.job_ids_size(), " ids; accepted are 1..", kMaxJobs));
  }
  for (const JobId id : request.job_ids()) {
    if (FindJob(id) == nullptr) return NotFound("JOB_NOT_FOUND", absl::StrCat("no job ", id, "; nothing was cancelled"));
  }
  v1::CancelJobResponse response;
  for (const JobId id : request.job_ids()) {
    for (JobEntry* job : JobsOf(id)) {
      if (CancelOne(*job, request.user())) response.add_cancelled_job_ids(job->id);
    }
  }
  return response;
}

bool CoreImpl::CancelOne(JobEntry& job, const std::string& user) {
  if (HasEnded(*job.job) || job.job->state() == v1::JOB_STATE_STOPPING) return false;
  v1::ExitVerdict verdict;
  verdict.set_cause(v1::END_CAUSE_CANCELLED);
  verdict.set_message(user.empty() ? "cancelled" : absl::StrCat("cancelled by ", user));
  verdict.set_rank(-1);
  *verdict.mutable_time() = ToProtoTime(now_);
  if (job.gang == nullptr) {
    EndJob(job, std::move(verdict));
  } else {
    EndGang(job, std::move(verdict));
  }
  return true;
}

}  // namespace closeknit
