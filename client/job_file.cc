#include "client/job_file.h"

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/flag_values.h"
#include "client/suggest.h"
#include "google/protobuf/duration.pb.h"
#include "proto/base/proto_time.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Fills a message from YAML by reflection, so that a new field of JobSpec needs no code here.
class Filler {
 public:
  explicit Filler(absl::string_view file_name) : file_name_(std::string(file_name)) {}

  absl::Status Fill(const YAML::Node& node, Message* message) {
    if (!node.IsMap()) return Error(node, "expected 'key: value' lines");
    absl::flat_hash_set<std::string> seen;
    for (const auto& entry : node) {
      const std::string key = entry.first.Scalar();
      const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(key);
      if (field == nullptr) return UnknownKey(entry.first, key, *message);
      if (!seen.insert(key).second) return Error(entry.first, absl::StrCat("'", key, "' is given twice"));
      RETURN_IF_ERROR(FillField(entry.second, *field, message));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Error(const YAML::Node& node, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(file_name_, ":", node.Mark().line + 1, ":", node.Mark().column + 1, ": ", what));
  }

  absl::Status UnknownKey(const YAML::Node& node, const std::string& key, const Message& message) const {
    std::vector<std::string> names;
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) names.push_back(message.GetDescriptor()->field(i)->name());
    return Error(node, absl::StrCat("unknown key '", key, "'", DidYouMean(key, names)));
  }

  absl::Status FillField(const YAML::Node& node, const FieldDescriptor& field, Message* message) {
    if (field.is_map()) return FillMap(node, field, message);
    if (!field.is_repeated()) return FillOne(node, field, message);
    if (field.name() == "parallelism" && node.IsMap()) return FillParallelism(node, field, message);
    if (node.IsScalar()) return AddOne(node, field, message);
    if (!node.IsSequence()) return Error(node, absl::StrCat("'", field.name(), "' needs a list"));
    for (const YAML::Node& item : node) RETURN_IF_ERROR(AddOne(item, field, message));
    return absl::OkStatus();
  }

  absl::Status FillMap(const YAML::Node& node, const FieldDescriptor& field, Message* message) {
    if (!node.IsMap()) return Error(node, absl::StrCat("'", field.name(), "' needs 'key: value' pairs"));
    for (const auto& pair : node) {
      Message* entry = message->GetReflection()->AddMessage(message, &field);
      RETURN_IF_ERROR(FillOne(pair.first, *field.message_type()->map_key(), entry));
      RETURN_IF_ERROR(FillOne(pair.second, *field.message_type()->map_value(), entry));
    }
    return absl::OkStatus();
  }

  // {tp: 8, dp: 4}: YAML keeps the order in which pairs are written.
  absl::Status FillParallelism(const YAML::Node& node, const FieldDescriptor& field, Message* message) {
    for (const auto& pair : node) {
      auto* dimension = static_cast<v1::ParallelDimension*>(message->GetReflection()->AddMessage(message, &field));
      dimension->set_name(pair.first.Scalar());
      const auto degree = pair.second.IsScalar() ? ParseCount(pair.second.Scalar()) : absl::InvalidArgumentError("expected a degree");
      if (!degree.ok()) return Error(pair.second, degree.status().message());
      dimension->set_degree(*degree);
    }
    return absl::OkStatus();
  }

  absl::Status AddOne(const YAML::Node& node, const FieldDescriptor& field, Message* message) {
    const Reflection& reflection = *message->GetReflection();
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return Fill(node, reflection.AddMessage(message, &field));
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_STRING)
      return Error(node, absl::StrCat("'", field.name(), "' cannot be read from a file"));
    if (!node.IsScalar()) return Error(node, absl::StrCat("'", field.name(), "' needs text"));
    reflection.AddString(message, &field, node.Scalar());
    return absl::OkStatus();
  }

  absl::Status FillOne(const YAML::Node& node, const FieldDescriptor& field, Message* message) {
    const Reflection& reflection = *message->GetReflection();
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Message* child = reflection.MutableMessage(message, &field);
      if (field.message_type() == google::protobuf::Duration::descriptor()) return FillDuration(node, child);
      return Fill(node, child);
    }
    if (!node.IsScalar()) return Error(node, absl::StrCat("'", field.name(), "' needs one value"));
    const std::string& text = node.Scalar();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        reflection.SetString(message, &field, text);
        return absl::OkStatus();
      case FieldDescriptor::CPPTYPE_UINT32:
        return SetNumber<uint32_t>(node, field, &Reflection::SetUInt32, message);
      case FieldDescriptor::CPPTYPE_INT32:
        return SetNumber<int32_t>(node, field, &Reflection::SetInt32, message);
      case FieldDescriptor::CPPTYPE_UINT64:
        return SetNumber<uint64_t>(node, field, &Reflection::SetUInt64, message);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return SetBytes(node, field, message);
      case FieldDescriptor::CPPTYPE_BOOL:
        return SetBool(node, field, message);
      case FieldDescriptor::CPPTYPE_ENUM:
        return SetEnum(node, field, message);
      default:
        return Error(node, absl::StrCat("'", field.name(), "' cannot be read from a file"));
    }
  }

  absl::Status FillDuration(const YAML::Node& node, Message* duration) {
    const auto parsed = node.IsScalar() ? ParseTimeLimit(node.Scalar()) : absl::InvalidArgumentError("expected a time");
    if (!parsed.ok()) return Error(node, parsed.status().message());
    *static_cast<google::protobuf::Duration*>(duration) = ToProtoDuration(*parsed);
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status SetNumber(const YAML::Node& node, const FieldDescriptor& field,
                         void (Reflection::*set)(Message*, const FieldDescriptor*, T) const, Message* message) {
    T value{};
    if (!absl::SimpleAtoi(node.Scalar(), &value))
      return Error(node, absl::StrCat("'", field.name(), "' needs a whole number in its range"));
    (message->GetReflection()->*set)(message, &field, value);
    return absl::OkStatus();
  }

  absl::Status SetBytes(const YAML::Node& node, const FieldDescriptor& field, Message* message) {
    const auto value = ParseBytes(node.Scalar());
    if (!value.ok()) return Error(node, value.status().message());
    message->GetReflection()->SetDouble(message, &field, *value);
    return absl::OkStatus();
  }

  absl::Status SetBool(const YAML::Node& node, const FieldDescriptor& field, Message* message) {
    bool value = false;
    if (!YAML::convert<bool>::decode(node, value)) return Error(node, absl::StrCat("'", field.name(), "' needs true or false"));
    message->GetReflection()->SetBool(message, &field, value);
    return absl::OkStatus();
  }

  // "gang" for RESTART_MODE_GANG: the names without the prefix that all values of the enum share.
  absl::Status SetEnum(const YAML::Node& node, const FieldDescriptor& field, Message* message) {
    const EnumDescriptor& type = *field.enum_type();
    const std::string prefix(absl::StripSuffix(type.value(0)->name(), "UNSPECIFIED"));
    std::string accepted;
    for (int i = 1; i < type.value_count(); ++i) {
      const std::string name = absl::AsciiStrToLower(absl::StripPrefix(type.value(i)->name(), prefix));
      if (name == node.Scalar()) {
        message->GetReflection()->SetEnum(message, &field, type.value(i));
        return absl::OkStatus();
      }
      absl::StrAppend(&accepted, accepted.empty() ? "" : ", ", name);
    }
    return Error(node, absl::StrCat("'", node.Scalar(), "' is not accepted; accepted are ", accepted));
  }

  const std::string file_name_;
};

}  // namespace

absl::StatusOr<v1::JobSpec> ReadJobFile(absl::string_view contents, absl::string_view file_name) {
  v1::JobSpec spec;
  try {
    const YAML::Node root = YAML::Load(std::string(contents));
    RETURN_IF_ERROR(Filler(file_name).Fill(root, &spec));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_name, ":", error.mark.line + 1, ":", error.mark.column + 1, ": not YAML: ", error.msg));
  }
  return spec;
}

}  // namespace closeknit
