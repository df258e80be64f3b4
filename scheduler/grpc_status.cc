#include "scheduler/grpc_status.h"

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/base/errors.h"
#include "proto/base/utf8.h"

namespace closeknit {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// The path of the first string field in `bytes`, read as a message of `type`, that is not UTF-8; empty: there is none.
std::string FindBadText(const std::string& bytes, const Descriptor* type, int depth) {
  constexpr int kMaxDepth = 20;  // deeper than any message of ours
  UnknownFieldSet fields;
  if (depth > kMaxDepth || !fields.ParseFromString(bytes)) return "";
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& value = fields.field(i);
    const FieldDescriptor* const field = type->FindFieldByNumber(value.number());
    if (field == nullptr || value.type() != UnknownField::TYPE_LENGTH_DELIMITED) continue;
    if (field->type() == FieldDescriptor::TYPE_STRING && !IsUtf8(value.length_delimited())) return field->name();
    if (field->type() != FieldDescriptor::TYPE_MESSAGE) continue;
    const std::string inner = FindBadText(value.length_delimited(), field->message_type(), depth + 1);
    if (!inner.empty()) return field->is_map() ? field->name() : absl::StrCat(field->name(), ".", inner);
  }
  return "";
}

std::string Flattened(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!bytes.Dump(&slices).ok()) return text;
  text.reserve(bytes.Length());
  for (const grpc::Slice& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const google::rpc::Status details = ToRpcStatus(status);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), details.message(),
                      details.details().empty() ? "" : details.SerializeAsString());
}

absl::Status ParseRequest(const grpc::ByteBuffer& bytes, google::protobuf::Message* request) {
  grpc::ByteBuffer copy = bytes;  // shares the slices; reading empties it
  if (grpc::GenericDeserialize<grpc::ProtoBufferReader, google::protobuf::Message>(&copy, request).ok()) return absl::OkStatus();
  const std::string field = FindBadText(Flattened(bytes), request->GetDescriptor(), 0);
  if (!field.empty()) return InvalidField(field, "is not UTF-8");
  return absl::InvalidArgumentError(absl::StrCat("the request is not a ", request->GetTypeName()));
}

grpc::ByteBuffer ToByteBuffer(const google::protobuf::Message& message) {
  grpc::ByteBuffer bytes;
  bool own = false;
  (void)grpc::GenericSerialize<grpc::ProtoBufferWriter, google::protobuf::Message>(message, &bytes,
                                                                                   &own);  // fails for messages over 2 GiB only
  return bytes;
}

}  // namespace closeknit
