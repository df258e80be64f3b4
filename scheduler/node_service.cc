#include "scheduler/node_service.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "scheduler/paging.h"
#include "scheduler/service_call.h"
#include "scheduler/watch_stream.h"

namespace closeknit {
namespace {

class NodeWatchStream : public WatchStream<std::string, NodeWatcher> {
 public:
  NodeWatchStream(const ReadModel* model, absl::flat_hash_set<std::string> nodes) : model_(model), nodes_(std::move(nodes)) {}

 protected:
  bool Fill(const std::string& name, grpc::ByteBuffer* message, bool*) override {
    if (!nodes_.empty() && !nodes_.contains(name)) return false;
    v1::WatchNodesResponse response;
    if (const std::shared_ptr<const v1::Node> node = model_->FindNode(name); node != nullptr) {
      *response.mutable_node() = *node;
    } else {
      response.mutable_node()->set_name(name);
      response.set_deleted(true);
    }
    *message = ToByteBuffer(response);
    return true;
  }

 private:
  const ReadModel* const model_;
  const absl::flat_hash_set<std::string> nodes_;  // empty: all
};

}  // namespace

absl::StatusOr<v1::ListNodesResponse> ListNodes(const ReadModel& model, const v1::ListNodesRequest& request) {
  ASSIGN_OR_RETURN(const absl::flat_hash_set<std::string> names, HostNames(request.nodes()));
  ASSIGN_OR_RETURN(const uint32_t page_size, PageSize(request.page_size()));
  const absl::flat_hash_set<int> states(request.states().begin(), request.states().end());
  if (!request.domain().empty()) {
    const std::optional<FabricVersion> fabric = model.fabric();
    if (!fabric.has_value() || !fabric->fabric->FindDomain(request.domain()).has_value()) {
      return InvalidField("domain", absl::StrCat("no domain '", request.domain(), "' in the fabric"));
    }
  }
  const auto matches = [&](const v1::Node& node) {
    if (!names.empty() && !names.contains(node.name())) return false;
    if (!states.empty() && !states.contains(node.state())) return false;
    return request.domain().empty() || std::find(node.domains().begin(), node.domains().end(), request.domain()) != node.domains().end();
  };
  v1::ListNodesResponse response;
  bool begun = request.page_token().empty(), more = false;
  uint32_t total = 0;
  for (const auto& node : model.Nodes()) {
    if (matches(*node)) {
      ++total;
      if (begun && static_cast<uint32_t>(response.nodes_size()) < page_size) {
        *response.add_nodes() = *node;
      } else if (begun) {
        more = true;
      }
    }
    // A token is the name of its page's last node.
    if (!begun && node->name() == request.page_token()) begun = true;
  }
  if (!begun) return InvalidField("page_token", "is not one that ListNodes gave, or its node is gone; begin again");
  response.set_total_size(total);
  if (more) response.set_next_page_token(response.nodes(response.nodes_size() - 1).name());
  return response;
}

grpc::ServerUnaryReactor* NodeService::GetNode(grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
                                               grpc::ByteBuffer* response) {
  v1::GetNodeRequest request;
  if (const absl::Status status = ParseRequest(*bytes, &request); !status.ok()) return FinishNow(context, status);
  const std::shared_ptr<const v1::Node> node = model_->FindNode(request.name());
  if (node == nullptr) return FinishNow(context, NotFound("NODE_NOT_FOUND", absl::StrCat("no node '", request.name(), "'")));
  return FinishNow(context, response, *node);
}

grpc::ServerUnaryReactor* NodeService::ListNodes(grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
                                                 grpc::ByteBuffer* response) {
  v1::ListNodesRequest request;
  if (const absl::Status status = ParseRequest(*bytes, &request); !status.ok()) return FinishNow(context, status);
  const absl::StatusOr<v1::ListNodesResponse> nodes = closeknit::ListNodes(*model_, request);
  if (!nodes.ok()) return FinishNow(context, nodes.status());
  return FinishNow(context, response, *nodes);
}

grpc::ServerUnaryReactor* NodeService::DrainNodes(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                                  grpc::ByteBuffer* response) {
  return AskCore<v1::DrainNodesResponse, closeknit::DrainNodes>(loop_, context, request, response);
}

grpc::ServerUnaryReactor* NodeService::ResumeNodes(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                                   grpc::ByteBuffer* response) {
  return AskCore<v1::ResumeNodesResponse, closeknit::ResumeNodes>(loop_, context, request, response);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* NodeService::WatchNodes(grpc::CallbackServerContext*, const grpc::ByteBuffer* bytes) {
  v1::WatchNodesRequest request;
  absl::Status status = ParseRequest(*bytes, &request);
  absl::StatusOr<absl::flat_hash_set<std::string>> names = status.ok() ? HostNames(request.nodes()) : status;
  if (!names.ok()) return new FailedStream(names.status());
  auto stream = std::make_shared<NodeWatchStream>(model_, *std::move(names));
  stream->OwnSelf(stream);
  model_->Watch(std::weak_ptr<NodeWatcher>(stream));
  for (const auto& node : model_->Nodes()) stream->Changed(node->name());
  return stream.get();
}

}  // namespace closeknit
