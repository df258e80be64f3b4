// PlacementService: plans on a snapshot, on a worker.
#ifndef CLOSEKNIT_SCHEDULER_PLACEMENT_SERVICE_H_
#define CLOSEKNIT_SCHEDULER_PLACEMENT_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "closeknit/v1/placement.grpc.pb.h"
#include "scheduler/commit_loop.h"
#include "scheduler/worker_pool.h"

namespace closeknit {

class PlacementService : public v1::PlacementService::WithRawCallbackMethod_Plan<v1::PlacementService::Service> {
 public:
  // Both outlive the service and its calls.
  PlacementService(CommitLoop* loop, WorkerPool* workers) : loop_(loop), workers_(workers) {}
  grpc::ServerUnaryReactor* Plan(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;

 private:
  CommitLoop* const loop_;
  WorkerPool* const workers_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_PLACEMENT_SERVICE_H_
