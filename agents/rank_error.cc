#include "agents/rank_error.h"

#include "agents/rank_log.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"

namespace closeknit {
namespace {

const google::protobuf::Value* Message(const google::protobuf::Struct& object) {
  const auto found = object.fields().find("message");
  return found == object.fields().end() ? nullptr : &found->second;
}

}  // namespace

std::string ErrorMessage(absl::string_view json) {
  google::protobuf::Struct object;
  if (!google::protobuf::util::JsonStringToMessage(std::string(json), &object).ok()) return "";
  const google::protobuf::Value* message = Message(object);
  if (message != nullptr && message->has_struct_value()) message = Message(message->struct_value());
  if (message == nullptr) return "";
  return ToValidUtf8(absl::string_view(message->string_value()).substr(0, kMaxErrorMessageBytes));
}

}  // namespace closeknit
