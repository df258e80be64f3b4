// TopologyService: reads descriptions on a worker, hands the fabric to the core.
#ifndef CLOSEKNIT_SCHEDULER_TOPOLOGY_SERVICE_H_
#define CLOSEKNIT_SCHEDULER_TOPOLOGY_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "closeknit/v1/topology.grpc.pb.h"
#include "scheduler/commit_loop.h"
#include "scheduler/read_model.h"
#include "scheduler/worker_pool.h"

namespace closeknit {

inline constexpr size_t kMaxDescriptionBytes = 64 << 20;

class TopologyService : public v1::TopologyService::WithRawCallbackMethod_ApplyTopology<
                            v1::TopologyService::WithRawCallbackMethod_GetTopology<v1::TopologyService::Service>> {
 public:
  // All outlive the service and its calls.
  TopologyService(CommitLoop* loop, const ReadModel* model, WorkerPool* workers) : loop_(loop), model_(model), workers_(workers) {}

  grpc::ServerUnaryReactor* ApplyTopology(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetTopology(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;

 private:
  CommitLoop* const loop_;
  const ReadModel* const model_;
  WorkerPool* const workers_;
};

// Reads the description of the request and asks the core to make it the fabric; `answer` as CommitLoop::Call.
void ApplyDescription(CommitLoop* loop, v1::ApplyTopologyRequest request, CommitLoop::Answer answer);

// The fabric as GetTopology tells it.
v1::Topology DescribeFabric(const v1::FabricRecord& record, const Fabric& fabric);

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_TOPOLOGY_SERVICE_H_
