// A scheduler for tests of the client: real gRPC services on a free loopback port that answer from a script.
#ifndef CLOSEKNIT_CLIENT_FAKE_SCHEDULER_H_
#define CLOSEKNIT_CLIENT_FAKE_SCHEDULER_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "closeknit/v1/jobs.grpc.pb.h"
#include "closeknit/v1/logs.grpc.pb.h"
#include "proto/base/mutex.h"

namespace closeknit {

class FakeScheduler : public v1::JobService::Service, public v1::LogService::Service {
 public:
  FakeScheduler();
  ~FakeScheduler() override;
  std::string target() const;

  // What the next calls see. Set before they are made.
  std::vector<grpc::Status> submit_failures;              // answered first, in order
  std::vector<v1::Job> jobs;                              // GetJob, ListJobs
  std::vector<v1::WatchJobsResponse> updates;             // WatchJobs, then the stream ends
  std::vector<std::vector<v1::StreamLogsResponse>> logs;  // one vector a stream; all but the last end with UNAVAILABLE

  std::vector<v1::SubmitJobRequest> submitted() const;
  std::vector<v1::CancelJobRequest> cancelled() const;

 private:
  grpc::Status SubmitJob(grpc::ServerContext* context, const v1::SubmitJobRequest* request, v1::SubmitJobResponse* response) override;
  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request, v1::Job* response) override;
  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request, v1::ListJobsResponse* response) override;
  grpc::Status CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request, v1::CancelJobResponse* response) override;
  grpc::Status WatchJobs(grpc::ServerContext* context, const v1::WatchJobsRequest* request,
                         grpc::ServerWriter<v1::WatchJobsResponse>* writer) override;
  grpc::Status StreamLogs(grpc::ServerContext* context, const v1::StreamLogsRequest* request,
                          grpc::ServerWriter<v1::StreamLogsResponse>* writer) override;

  mutable Mutex mutex_;  // calls come on gRPC's threads
  std::vector<v1::SubmitJobRequest> submitted_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::CancelJobRequest> cancelled_ ABSL_GUARDED_BY(mutex_);
  size_t log_streams_ ABSL_GUARDED_BY(mutex_) = 0;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_CLIENT_FAKE_SCHEDULER_H_
