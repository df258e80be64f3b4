#include "client/output.h"

#include <google/protobuf/util/json_util.h>
#include <yaml-cpp/yaml.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/connection.h"
#include "google/rpc/error_details.pb.h"
#include "proto/base/check.h"

namespace closeknit {
namespace {

google::protobuf::util::JsonPrintOptions JsonOptions() {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  return options;
}

// JSON is YAML's flow style; written again in block style.
void SetBlockStyle(YAML::Node node) {
  if (node.IsMap()) {
    node.SetStyle(YAML::EmitterStyle::Block);
    for (auto entry : node) SetBlockStyle(entry.second);
  } else if (node.IsSequence()) {
    node.SetStyle(YAML::EmitterStyle::Block);
    for (auto item : node) SetBlockStyle(item);
  }
}

}  // namespace

std::string ToJson(const google::protobuf::Message& message) {
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, JsonOptions());
  CHECK(status.ok()) << status.ToString();
  return json;
}

std::string ToYaml(const google::protobuf::Message& message) {
  YAML::Node node = YAML::Load(ToJson(message));
  SetBlockStyle(node);
  return absl::StrCat(YAML::Dump(node), "\n");
}

void PrintMessage(const Output& output, const google::protobuf::Message& message) {
  *output.out << (output.format == OutputFormat::kYaml ? ToYaml(message) : ToJson(message)) << std::flush;
}

void PrintTable(const Output& output, const Table& table) { *output.out << table.Render(output.headers) << std::flush; }

int Fail(const Output& output, const absl::Status& status) {
  *output.err << "knit: error: " << std::string(status.message()) << "\n";
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    google::rpc::BadRequest request;
    google::rpc::PreconditionFailure precondition;
    if (absl::StrContains(url, "BadRequest") && request.ParseFromString(std::string(payload)) && request.field_violations_size() > 1) {
      for (const auto& violation : request.field_violations())
        *output.err << "  " << violation.field() << ": " << violation.description() << "\n";
    }
    if (absl::StrContains(url, "PreconditionFailure") && precondition.ParseFromString(std::string(payload)) &&
        precondition.violations_size() > 1) {
      for (const auto& violation : precondition.violations())
        *output.err << "  " << violation.subject() << ": " << violation.description() << "\n";
    }
  });
  *output.err << std::flush;
  return ExitCodeOf(status);
}

std::string Coloured(const Output& output, v1::JobState state) {
  if (!output.colour) return StateName(state);
  const char* colour = "33";  // yellow: on its way
  if (state == v1::JOB_STATE_COMPLETED || state == v1::JOB_STATE_RUNNING) colour = "32";
  if (state == v1::JOB_STATE_FAILED || state == v1::JOB_STATE_TIMED_OUT) colour = "31";
  return absl::StrCat("\x1b[", colour, "m", StateName(state), "\x1b[0m");
}

}  // namespace closeknit
