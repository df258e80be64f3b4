// NodeService: drains and resumes go to the core, everything else is read from what was committed.
#ifndef CLOSEKNIT_SCHEDULER_NODE_SERVICE_H_
#define CLOSEKNIT_SCHEDULER_NODE_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "closeknit/v1/nodes.grpc.pb.h"
#include "scheduler/commit_loop.h"
#include "scheduler/read_model.h"

namespace closeknit {

using RawNodeService = v1::NodeService::WithRawCallbackMethod_GetNode<
    v1::NodeService::WithRawCallbackMethod_ListNodes<v1::NodeService::WithRawCallbackMethod_WatchNodes<
        v1::NodeService::WithRawCallbackMethod_DrainNodes<v1::NodeService::WithRawCallbackMethod_ResumeNodes<v1::NodeService::Service>>>>>;

class NodeService : public RawNodeService {
 public:
  // Both outlive the service and its calls.
  NodeService(CommitLoop* loop, ReadModel* model) : loop_(loop), model_(model) {}

  grpc::ServerUnaryReactor* GetNode(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListNodes(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* DrainNodes(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ResumeNodes(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchNodes(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) override;

 private:
  CommitLoop* const loop_;
  ReadModel* const model_;
};

// ListNodes on any model; kInvalidArgument names the field.
absl::StatusOr<v1::ListNodesResponse> ListNodes(const ReadModel& model, const v1::ListNodesRequest& request);

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_NODE_SERVICE_H_
