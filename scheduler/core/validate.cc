#include "scheduler/core/validate.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/errors.h"
#include "proto/base/proto_time.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

// What a rank is told about its gang; TORCHELASTIC_* and KNIT_* are reserved as families.
constexpr absl::string_view kReservedVariables[] = {
    "GROUP_RANK", "GROUP_WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR",          "MASTER_PORT",
    "RANK",       "ROLE_NAME",        "ROLE_RANK",  "ROLE_WORLD_SIZE",  "CUDA_VISIBLE_DEVICES", "WORLD_SIZE",
};

absl::Status CheckRange(absl::string_view field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return InvalidField(field, absl::StrCat(value, " is out of range; accepted are ", least, "..", most));
}

// One line for people: no control characters at all.
absl::Status CheckLine(absl::string_view field, absl::string_view text, size_t max_bytes) {
  RETURN_IF_ERROR(CheckText(field, text, max_bytes));
  if (text.find_first_of("\n\t") != absl::string_view::npos)
    return InvalidField(field, "a control character; one line of text is accepted");
  return absl::OkStatus();
}

absl::Status CheckDuration(absl::string_view field, const google::protobuf::Duration& duration, absl::Duration least, absl::Duration most) {
  // Larger seconds would overflow on the way; nanos must not contradict them.
  constexpr int64_t kMaxSeconds = 315'576'000'000;
  const bool valid = duration.seconds() >= -kMaxSeconds && duration.seconds() <= kMaxSeconds && duration.nanos() > -1'000'000'000 &&
                     duration.nanos() < 1'000'000'000;
  const absl::Duration value = valid ? FromProtoDuration(duration) : absl::InfiniteDuration();
  if (value >= least && value <= most) return absl::OkStatus();
  const std::string text = valid ? absl::FormatDuration(value) : absl::StrCat(duration.seconds(), "s", duration.nanos(), "ns");
  return InvalidField(field,
                      absl::StrCat(text, " is out of range; accepted are ", absl::FormatDuration(least), "..", absl::FormatDuration(most)));
}

absl::Status CheckSize(const v1::JobSpec& spec) {
  RETURN_IF_ERROR(CheckRange("nodes", spec.nodes(), 1, kMaxNodes));
  RETURN_IF_ERROR(CheckRange("gpus_per_node", spec.gpus_per_node(), 0, kMaxGpusPerNode));
  RETURN_IF_ERROR(CheckRange("spares", spec.spares(), 0, kMaxNodes));
  const uint32_t gpus = spec.gpus_per_node(), ranks = spec.ranks_per_node();
  if (gpus == 0) return CheckRange("ranks_per_node", ranks, 0, kMaxRanksPerNode);
  if (ranks > gpus) {
    return InvalidField("ranks_per_node", absl::StrCat(ranks, " ranks for ", gpus, " GPUs; at most one rank a GPU is accepted"));
  }
  if (ranks != 0 && gpus % ranks != 0) {
    return InvalidField("ranks_per_node",
                        absl::StrCat(ranks, " ranks cannot share ", gpus, " GPUs evenly; accepted are divisors of ", gpus));
  }
  return absl::OkStatus();
}

absl::Status CheckCommand(const v1::JobSpec& spec) {
  if (spec.command().empty() && spec.script().empty()) return InvalidField("command", "neither a command nor a script; give exactly one");
  if (!spec.command().empty() && !spec.script().empty()) return InvalidField("command", "both a command and a script; give exactly one");
  size_t bytes = 0;
  for (int i = 0; i < spec.command_size(); ++i) {
    RETURN_IF_ERROR(CheckUtf8(absl::StrCat("command[", i, "]"), spec.command(i), kMaxCommandBytes));
    bytes += spec.command(i).size() + 1;
  }
  if (bytes > kMaxCommandBytes) return InvalidField("command", absl::StrCat(bytes, " bytes; at most ", kMaxCommandBytes, " are accepted"));
  if (!spec.command().empty() && spec.command(0).empty()) return InvalidField("command[0]", "empty; the program's name is needed");
  if (spec.script().empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckUtf8("script", spec.script(), kMaxScriptBytes));
  if (!absl::StartsWith(spec.script(), "#!")) return InvalidField("script", "does not begin with \"#!\" and an interpreter");
  return absl::OkStatus();
}

absl::Status CheckVariable(absl::string_view name, absl::string_view value) {
  const std::string field = absl::StrCat("environment[", name.substr(0, 100), "]");
  const bool well_formed = !name.empty() && !absl::ascii_isdigit(name[0]) &&
                           absl::c_all_of(name, [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
  if (!well_formed) return InvalidField("environment", "a name that is not of letters, digits and '_', or begins with a digit");
  if (IsReservedVariable(name)) return InvalidField(field, "reserved: the agent sets it for each rank");
  return CheckUtf8(field, value, 128 << 10);  // Linux' own limit of one string
}

absl::Status CheckEnvironment(const v1::JobSpec& spec) {
  size_t bytes = 0;
  for (const auto& [name, value] : spec.environment()) {
    RETURN_IF_ERROR(CheckVariable(name, value));
    bytes += name.size() + value.size() + 2;
  }
  if (bytes <= kMaxEnvironmentBytes) return absl::OkStatus();
  return InvalidField("environment", absl::StrCat(bytes, " bytes; at most ", kMaxEnvironmentBytes, " are accepted"));
}

absl::Status CheckDirectory(const v1::JobSpec& spec) {
  RETURN_IF_ERROR(CheckUtf8("working_directory", spec.working_directory(), 4'096));
  if (spec.working_directory().empty() || spec.working_directory()[0] == '/') return absl::OkStatus();
  return InvalidField("working_directory", absl::StrCat("'", spec.working_directory(), "' is not absolute; accepted are paths from \"/\""));
}

absl::Status CheckTimes(const v1::JobSpec& spec) {
  if (spec.has_time_limit()) RETURN_IF_ERROR(CheckDuration("time_limit", spec.time_limit(), absl::Nanoseconds(1), kMaxTimeLimit));
  if (spec.has_grace_period()) RETURN_IF_ERROR(CheckDuration("grace_period", spec.grace_period(), absl::ZeroDuration(), kMaxGracePeriod));
  return absl::OkStatus();
}

// Numbers that this program's enums do not have come from newer clients: refused rather than taken as something else.
absl::Status CheckEnums(const v1::JobSpec& spec) {
  if (!v1::EntryMode_IsValid(spec.entry())) return InvalidField("entry", absl::StrCat(static_cast<int>(spec.entry()), " is unknown"));
  if (!v1::RestartMode_IsValid(spec.restart().mode())) {
    return InvalidField("restart.mode", absl::StrCat(static_cast<int>(spec.restart().mode()), " is unknown"));
  }
  if (!v1::Objective_IsValid(spec.constraints().objective())) {
    return InvalidField("constraints.objective", absl::StrCat(static_cast<int>(spec.constraints().objective()), " is unknown"));
  }
  return absl::OkStatus();
}

absl::Status CheckDependencies(const v1::JobSpec& spec) {
  if (spec.dependencies_size() > kMaxDependencies) {
    return InvalidField("dependencies", absl::StrCat(spec.dependencies_size(), " entries; at most ", kMaxDependencies, " are accepted"));
  }
  for (int i = 0; i < spec.dependencies_size(); ++i) {
    const v1::Dependency& dependency = spec.dependencies(i);
    const std::string field = absl::StrCat("dependencies[", i, "]");
    if (dependency.type() == v1::DEPENDENCY_TYPE_UNSPECIFIED || !v1::DependencyType_IsValid(dependency.type())) {
      return InvalidField(field + ".type", "not one of AFTER_OK, AFTER_NOT_OK, AFTER_ANY, AFTER");
    }
    if (dependency.job_id() == 0) return InvalidField(field + ".job_id", "0 is no job");
  }
  return absl::OkStatus();
}

absl::Status CheckWeight(const v1::JobSpec& spec) {
  const size_t bytes = spec.ByteSizeLong();
  if (bytes * spec.nodes() <= kMaxGangBytes) return absl::OkStatus();
  return InvalidField(spec.script().size() * 2 > bytes ? "script" : "nodes",
                      absl::StrCat("a spec of ", bytes, " bytes for ", spec.nodes(), " hosts; at most ", kMaxGangBytes,
                                   " bytes in all are accepted: put large files where the hosts can read them"));
}

absl::Status ValidateSpec(const v1::JobSpec& spec) {
  RETURN_IF_ERROR(CheckLine("name", spec.name(), 128));
  RETURN_IF_ERROR(CheckLine("partition", spec.partition(), 128));
  RETURN_IF_ERROR(CheckRange("priority", spec.priority(), -kMaxPriority, kMaxPriority));
  RETURN_IF_ERROR(CheckText("comment", spec.comment(), 1'024));
  RETURN_IF_ERROR(CheckSize(spec));
  RETURN_IF_ERROR(CheckCommand(spec));
  RETURN_IF_ERROR(CheckEnvironment(spec));
  RETURN_IF_ERROR(CheckDirectory(spec));
  RETURN_IF_ERROR(CheckTimes(spec));
  RETURN_IF_ERROR(CheckEnums(spec));
  RETURN_IF_ERROR(CheckRange("restart.max_restarts", spec.restart().max_restarts(), 0, kMaxRestarts));
  RETURN_IF_ERROR(CheckDependencies(spec));
  return CheckWeight(spec);
}

// The command's own name, for people.
std::string DefaultName(const v1::JobSpec& spec) {
  if (spec.command().empty()) return "script";
  const absl::string_view program = spec.command(0);
  const absl::string_view name = program.substr(program.rfind('/') + 1);  // npos + 1 == 0
  const bool fits = !name.empty() && name.size() <= 128 && CheckLine("name", name, 128).ok();
  return fits ? std::string(name) : "command";
}

}  // namespace

bool IsReservedVariable(absl::string_view name) {
  return absl::StartsWith(name, "KNIT_") || absl::StartsWith(name, "TORCHELASTIC_") || absl::c_linear_search(kReservedVariables, name);
}

absl::Status ValidateSubmit(const v1::SubmitJobRequest& request) {
  RETURN_IF_ERROR(CheckLine("request_id", request.request_id(), 128));
  RETURN_IF_ERROR(CheckLine("user", request.user(), 128));
  if (request.user().empty()) return InvalidField("user", "empty; the user that the job runs as is needed");
  if (!request.has_spec()) return InvalidField("spec", "missing");
  return UnderField("spec", ValidateSpec(request.spec()));
}

v1::JobSpec Normalized(v1::JobSpec spec) {
  if (spec.name().empty()) spec.set_name(DefaultName(spec));
  if (spec.partition().empty()) spec.set_partition("default");
  if (spec.ranks_per_node() == 0) spec.set_ranks_per_node(std::max<uint32_t>(1, spec.gpus_per_node()));
  if (spec.working_directory().empty()) spec.set_working_directory("/");
  if (spec.entry() == v1::ENTRY_MODE_UNSPECIFIED) spec.set_entry(v1::ENTRY_MODE_PER_RANK);
  if (!spec.has_grace_period()) *spec.mutable_grace_period() = ToProtoDuration(kDefaultGracePeriod);
  if (spec.restart().mode() == v1::RESTART_MODE_UNSPECIFIED) spec.mutable_restart()->set_mode(v1::RESTART_MODE_NEVER);
  if (spec.restart().mode() == v1::RESTART_MODE_GANG && spec.restart().max_restarts() == 0) {
    spec.mutable_restart()->set_max_restarts(kDefaultRestarts);
  }
  return spec;
}

}  // namespace closeknit
