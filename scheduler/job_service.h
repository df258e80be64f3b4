// JobService: submits and cancels go to the core, everything else is read from what was committed.
#ifndef CLOSEKNIT_SCHEDULER_JOB_SERVICE_H_
#define CLOSEKNIT_SCHEDULER_JOB_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "closeknit/v1/jobs.grpc.pb.h"
#include "scheduler/commit_loop.h"
#include "scheduler/read_model.h"

namespace closeknit {

// Every method takes its request as bytes: see ParseRequest.
using RawJobService = v1::JobService::WithRawCallbackMethod_SubmitJob<
    v1::JobService::WithRawCallbackMethod_GetJob<v1::JobService::WithRawCallbackMethod_ListJobs<
        v1::JobService::WithRawCallbackMethod_CancelJob<v1::JobService::WithRawCallbackMethod_WatchJobs<v1::JobService::Service>>>>>;

class JobService : public RawJobService {
 public:
  // Both outlive the service and its calls.
  JobService(CommitLoop* loop, ReadModel* model) : loop_(loop), model_(model) {}

  grpc::ServerUnaryReactor* SubmitJob(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchJobs(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) override;

 private:
  CommitLoop* const loop_;
  ReadModel* const model_;
};

// ListJobs on any model; kInvalidArgument names the field.
absl::StatusOr<v1::ListJobsResponse> ListJobs(const ReadModel& model, const v1::ListJobsRequest& request);

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_JOB_SERVICE_H_
