#include "client/fake_scheduler.h"

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace closeknit {

FakeScheduler::FakeScheduler() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(static_cast<v1::JobService::Service*>(this));
  builder.RegisterService(static_cast<v1::LogService::Service*>(this));
  server_ = builder.BuildAndStart();
  CHECK(server_ != nullptr) << "no free port";
}

FakeScheduler::~FakeScheduler() { server_->Shutdown(); }

std::string FakeScheduler::target() const { return absl::StrCat("127.0.0.1:", port_); }

std::vector<v1::SubmitJobRequest> FakeScheduler::submitted() const {
  MutexLock lock(&mutex_);
  return submitted_;
}

std::vector<v1::CancelJobRequest> FakeScheduler::cancelled() const {
  MutexLock lock(&mutex_);
  return cancelled_;
}

grpc::Status FakeScheduler::SubmitJob(grpc::ServerContext*, const v1::SubmitJobRequest* request, v1::SubmitJobResponse* response) {
  MutexLock lock(&mutex_);
  submitted_.push_back(*request);
  if (submitted_.size() <= submit_failures.size()) return submit_failures[submitted_.size() - 1];
  response->set_job_id(7);
  response->set_tasks(1);
  return grpc::Status::OK;
}

grpc::Status FakeScheduler::GetJob(grpc::ServerContext*, const v1::GetJobRequest* request, v1::Job* response) {
  for (const v1::Job& job : jobs) {
    if (job.job_id() != request->job_id()) continue;
    *response = job;
    return grpc::Status::OK;
  }
  return {grpc::StatusCode::NOT_FOUND, absl::StrCat("no job ", request->job_id())};
}

// Two jobs a page, so that paging is tested.
grpc::Status FakeScheduler::ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request, v1::ListJobsResponse* response) {
  size_t next = request->page_token().empty() ? 0 : std::stoul(request->page_token());
  for (int i = 0; i < 2 && next < jobs.size(); ++i) *response->add_jobs() = jobs[next++];
  if (next < jobs.size()) response->set_next_page_token(absl::StrCat(next));
  response->set_total_size(static_cast<uint32_t>(jobs.size()));
  return grpc::Status::OK;
}

grpc::Status FakeScheduler::CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request, v1::CancelJobResponse* response) {
  MutexLock lock(&mutex_);
  cancelled_.push_back(*request);
  *response->mutable_cancelled_job_ids() = request->job_ids();
  return grpc::Status::OK;
}

grpc::Status FakeScheduler::WatchJobs(grpc::ServerContext*, const v1::WatchJobsRequest*,
                                      grpc::ServerWriter<v1::WatchJobsResponse>* writer) {
  for (const v1::WatchJobsResponse& update : updates) writer->Write(update);
  return grpc::Status::OK;
}

grpc::Status FakeScheduler::StreamLogs(grpc::ServerContext*, const v1::StreamLogsRequest*,
                                       grpc::ServerWriter<v1::StreamLogsResponse>* writer) {
  size_t stream = 0;
  {
    MutexLock lock(&mutex_);
    stream = log_streams_++;
  }
  if (stream >= logs.size()) return grpc::Status::OK;
  for (const v1::StreamLogsResponse& chunk : logs[stream]) writer->Write(chunk);
  return stream + 1 < logs.size() ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "host h1 cannot be reached") : grpc::Status::OK;
}

}  // namespace closeknit
