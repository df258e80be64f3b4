// A unary call whose answer comes from the commit loop or a worker.
#ifndef CLOSEKNIT_SCHEDULER_SERVICE_CALL_H_
#define CLOSEKNIT_SCHEDULER_SERVICE_CALL_H_

#include <grpcpp/grpcpp.h>

#include <string>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "scheduler/commit_loop.h"
#include "scheduler/grpc_status.h"

namespace closeknit {

// Who a call is made for where it does not say: nobody, the user without rights.
inline constexpr char kUnnamedUser[] = "nobody";

inline grpc::ServerUnaryReactor* FinishNow(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

inline void FinishWith(grpc::ServerUnaryReactor* reactor, grpc::ByteBuffer* response,
                       const absl::StatusOr<const google::protobuf::Message*>& result) {
  if (result.ok()) *response = ToByteBuffer(**result);
  reactor->Finish(ToGrpc(result.status()));
}

inline grpc::ServerUnaryReactor* FinishNow(grpc::CallbackServerContext* context, grpc::ByteBuffer* response,
                                           const google::protobuf::Message& message) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  FinishWith(reactor, response, &message);
  return reactor;
}

// Hands `event` (which has a `request`) to the loop; the call is finished with the Response that the core replies.
template <typename Response, typename Event>
grpc::ServerUnaryReactor* AskCore(CommitLoop* loop, grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
                                  grpc::ByteBuffer* response) {
  Event event;
  if (const absl::Status status = ParseRequest(*bytes, &event.request); !status.ok()) return FinishNow(context, status);
  if (event.request.user().empty()) event.request.set_user(kUnnamedUser);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  loop->Call(std::move(event), [reactor, response](absl::StatusOr<ReplyMessage> reply) {
    if (!reply.ok()) return FinishWith(reactor, response, reply.status());
    FinishWith(reactor, response, &std::get<Response>(*reply));
  });
  return reactor;
}

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_SERVICE_CALL_H_
