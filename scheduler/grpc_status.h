// absl::Status on gRPC's wire, with its google.rpc details, and requests off it with errors that name the field.
#ifndef CLOSEKNIT_SCHEDULER_GRPC_STATUS_H_
#define CLOSEKNIT_SCHEDULER_GRPC_STATUS_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace closeknit {

grpc::Status ToGrpc(const absl::Status& status);

// Reads a request as it came off the wire. gRPC's own reading answers INTERNAL without a word where a string is not UTF-8; this one gives
// kInvalidArgument with the field's path ("spec.environment[HOME]"), or says that the bytes are no such message.
absl::Status ParseRequest(const grpc::ByteBuffer& bytes, google::protobuf::Message* request);

// The message as bytes for the wire.
grpc::ByteBuffer ToByteBuffer(const google::protobuf::Message& message);

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_GRPC_STATUS_H_
