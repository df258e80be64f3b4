#include "client/submit_flags.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/flag_values.h"
#include "proto/base/errors.h"
#include "proto/base/proto_time.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr FlagKind kValue = FlagKind::kValue;
constexpr FlagKind kSwitch = FlagKind::kSwitch;

constexpr SubmitFlag kFlags[] = {
    {"nodes", "", 'N', kValue, "N", "hosts (default 1)"},
    {"gpus-per-node", "", 0, kValue, "G", "GPUs on each host (default 0)"},
    {"ranks-per-node", "ntasks-per-node", 0, kValue, "R", "ranks on each host (default: one a GPU, or 1)"},
    {"job-name", "", 'J', kValue, "NAME", "shown to people (default: the command's name)"},
    {"time", "", 't', kValue, "TIME", "running time after which the gang is stopped: 30 (minutes), 2:00:00, 1-12, 90s"},
    {"partition", "", 'p', kValue, "NAME", "queue"},
    {"priority", "", 0, kValue, "P", "higher starts first (default 0)"},
    {"chdir", "", 'D', kValue, "DIR", "working directory of the ranks (default: the present one)"},
    {"export", "", 0, kValue, "LIST", "environment to pass on: ALL (default), NONE, NAME,NAME=value,..."},
    {"parallelism", "", 0, kValue, "LIST", "parallel dimensions, innermost first: tp=8,pp=4,dp=16"},
    {"bytes", "", 0, kValue, "LIST", "bytes a rank sends to its neighbour per step: pp=537M,dp=18.8G"},
    {"objective", "", 0, kValue, "WHAT", "top-first (default) or time"},
    {"require", "", 0, kValue, "TIER", "all hosts in one domain of this tier, e.g. rack, pod"},
    {"max-domains", "", 0, kValue, "LIST", "at most so many domains: pod=2"},
    {"multiple-of", "", 0, kValue, "LIST", "each domain used gives a multiple: rack=2 (whole racks)"},
    {"exclude", "", 'x', kValue, "HOSTS", "never these hosts, e.g. h[001-004]"},
    {"nodelist", "", 'w', kValue, "HOSTS", "choose from these hosts only"},
    {"constraint", "features", 'C', kValue, "LIST", "features that every host must have: a,b or a&b"},
    {"allow-degraded", "", 0, kSwitch, "", "hosts with a rail down may be used"},
    {"spares", "", 0, kValue, "K", "further hosts held near the gang"},
    {"restart", "", 0, kValue, "WHEN", "never (default) or gang: start the whole gang again when a rank fails"},
    {"max-restarts", "", 0, kValue, "N", "restarts in the job's life (default 3 with --restart gang)"},
    {"array", "", 'a', kValue, "LIST", "one job a task: 0-9, 1,3,5-7, 0-99%4 (at most 4 at once)"},
    {"dependency", "", 'd', kValue, "LIST", "afterok:ID[:ID], afternotok, afterany, after"},
    {"entry", "", 0, kValue, "HOW", "per-rank (default) or per-host: run the command once a host"},
    {"grace", "", 0, kValue, "TIME", "from SIGTERM to SIGKILL (default 30s)"},
    {"hold", "", 'H', kSwitch, "", "stay pending until released"},
    {"hold-until-fits", "", 0, kSwitch, "", "accept a job larger than the cluster, and wait"},
    {"comment", "", 0, kValue, "TEXT", "kept with the job"},
};

absl::Status SetCount(absl::string_view value, void (v1::JobSpec::*set)(uint32_t), v1::JobSpec* spec) {
  ASSIGN_OR_RETURN(const uint32_t count, ParseCount(value));
  (spec->*set)(count);
  return absl::OkStatus();
}

absl::Status SetTierCounts(absl::string_view value, google::protobuf::Map<std::string, uint32_t>* counts) {
  ASSIGN_OR_RETURN(const auto pairs, ParseKeyValues(value));
  for (const auto& [tier, text] : pairs) {
    ASSIGN_OR_RETURN((*counts)[tier], ParseCount(text));
  }
  return absl::OkStatus();
}

template <typename E>
absl::Status SetChoice(absl::string_view value, std::initializer_list<std::pair<absl::string_view, E>> choices, E* chosen) {
  std::string names;
  for (const auto& [name, choice] : choices) {
    if (value == name) {
      *chosen = choice;
      return absl::OkStatus();
    }
    absl::StrAppend(&names, names.empty() ? "" : ", ", name);
  }
  return absl::InvalidArgumentError(absl::StrCat("'", value, "' is not accepted; accepted are ", names));
}

absl::Status SetRestart(absl::string_view value, v1::JobSpec* spec) {
  v1::RestartMode mode = v1::RESTART_MODE_UNSPECIFIED;
  RETURN_IF_ERROR(
      SetChoice(value, {{"never", v1::RESTART_MODE_NEVER}, {"none", v1::RESTART_MODE_NEVER}, {"gang", v1::RESTART_MODE_GANG}}, &mode));
  spec->mutable_restart()->set_mode(mode);
  return absl::OkStatus();
}

absl::Status SetMaxRestarts(absl::string_view value, v1::JobSpec* spec) {
  ASSIGN_OR_RETURN(const uint32_t count, ParseCount(value));
  spec->mutable_restart()->set_max_restarts(count);
  return absl::OkStatus();
}

absl::Status SetTime(absl::string_view value, v1::JobSpec* spec) {
  ASSIGN_OR_RETURN(const absl::Duration limit, ParseTimeLimit(value));
  if (limit == absl::InfiniteDuration())
    spec->clear_time_limit();
  else
    *spec->mutable_time_limit() = ToProtoDuration(limit);
  return absl::OkStatus();
}

absl::Status SetGrace(absl::string_view value, v1::JobSpec* spec) {
  ASSIGN_OR_RETURN(const absl::Duration grace, ParseSeconds(value));
  *spec->mutable_grace_period() = ToProtoDuration(grace);
  return absl::OkStatus();
}

absl::Status SetPriority(absl::string_view value, v1::JobSpec* spec) {
  int32_t priority = 0;
  if (!absl::SimpleAtoi(value, &priority)) return absl::InvalidArgumentError(absl::StrCat("'", value, "' is no whole number"));
  spec->set_priority(priority);
  return absl::OkStatus();
}

absl::Status SetDependencies(absl::string_view value, v1::JobSpec* spec) {
  ASSIGN_OR_RETURN(const auto dependencies, ParseDependencies(value));
  for (const v1::Dependency& dependency : dependencies) *spec->add_dependencies() = dependency;
  return absl::OkStatus();
}

absl::Status SetObjective(absl::string_view value, v1::JobSpec* spec) {
  v1::Objective objective = v1::OBJECTIVE_UNSPECIFIED;
  RETURN_IF_ERROR(SetChoice(value, {{"top-first", v1::OBJECTIVE_TOP_FIRST}, {"time", v1::OBJECTIVE_TIME}}, &objective));
  spec->mutable_constraints()->set_objective(objective);
  return absl::OkStatus();
}

absl::Status SetEntry(absl::string_view value, v1::JobSpec* spec) {
  v1::EntryMode entry = v1::ENTRY_MODE_UNSPECIFIED;
  RETURN_IF_ERROR(SetChoice(
      value, {{"per-rank", v1::ENTRY_MODE_PER_RANK}, {"torchrun-per-rank", v1::ENTRY_MODE_PER_RANK}, {"per-host", v1::ENTRY_MODE_PER_HOST}},
      &entry));
  spec->set_entry(entry);
  return absl::OkStatus();
}

// What each flag sets. Those with two flags to one field (parallelism and bytes, export) are done by ApplyFlags.
absl::Status ApplyFlag(const std::string& name, const std::string& value, v1::JobSpec* spec) {
  v1::PlacementConstraints& constraints = *spec->mutable_constraints();
  if (name == "nodes") return SetCount(value, &v1::JobSpec::set_nodes, spec);
  if (name == "gpus-per-node") return SetCount(value, &v1::JobSpec::set_gpus_per_node, spec);
  if (name == "ranks-per-node") return SetCount(value, &v1::JobSpec::set_ranks_per_node, spec);
  if (name == "spares") return SetCount(value, &v1::JobSpec::set_spares, spec);
  if (name == "time") return SetTime(value, spec);
  if (name == "grace") return SetGrace(value, spec);
  if (name == "priority") return SetPriority(value, spec);
  if (name == "objective") return SetObjective(value, spec);
  if (name == "entry") return SetEntry(value, spec);
  if (name == "restart") return SetRestart(value, spec);
  if (name == "max-restarts") return SetMaxRestarts(value, spec);
  if (name == "dependency") return SetDependencies(value, spec);
  if (name == "max-domains") return SetTierCounts(value, constraints.mutable_max_domains());
  if (name == "multiple-of") return SetTierCounts(value, constraints.mutable_multiple_of());
  if (name == "job-name") spec->set_name(value);
  if (name == "partition") spec->set_partition(value);
  if (name == "chdir") spec->set_working_directory(value);
  if (name == "require") constraints.set_required_tier(value);
  if (name == "exclude") constraints.add_exclude(value);
  if (name == "nodelist") constraints.add_nodelist(value);
  if (name == "constraint") {
    for (const absl::string_view feature : absl::StrSplit(value, absl::ByAnyChar(",&"), absl::SkipWhitespace())) {
      constraints.add_features(std::string(feature));
    }
  }
  if (name == "allow-degraded") constraints.set_allow_degraded(true);
  if (name == "array") spec->set_array(value);
  if (name == "hold") spec->set_hold(true);
  if (name == "hold-until-fits") spec->set_hold_until_fits(true);
  if (name == "comment") spec->set_comment(value);
  return absl::OkStatus();
}

absl::Status Named(absl::string_view flag, const absl::Status& status) {
  return status.ok() ? status : absl::Status(status.code(), absl::StrCat("--", flag, ": ", status.message()));
}

// Names that the server refuses because the agent sets them for each rank.
bool IsReserved(absl::string_view name) {
  static const absl::flat_hash_set<absl::string_view> names = {
      "RANK",       "LOCAL_RANK",       "GROUP_RANK",      "ROLE_RANK",   "ROLE_NAME",   "LOCAL_WORLD_SIZE",
      "WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES"};
  return absl::StartsWith(name, "KNIT_") || absl::StartsWith(name, "TORCHELASTIC_") || names.contains(name);
}

// The calling shell's own state, of no meaning in a rank.
bool IsShellState(absl::string_view name) {
  static const absl::flat_hash_set<absl::string_view> names = {"_",   "PWD",       "OLDPWD", "SHLVL",   "PS1",
                                                               "PS2", "LS_COLORS", "TERM",   "COLUMNS", "LINES"};
  return names.contains(name) || absl::StartsWith(name, "BASH_FUNC_") || absl::StartsWith(name, "SSH_");
}

// Whether the server accepts the pair: a C identifier and UTF-8.
bool IsPlain(absl::string_view name, absl::string_view value) {
  const bool identifier = !name.empty() && !absl::ascii_isdigit(name[0]) &&
                          std::all_of(name.begin(), name.end(), [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
  return identifier && CheckText("value", value, size_t{1} << 20).ok();
}

}  // namespace

absl::Span<const SubmitFlag> SubmitFlags() { return kFlags; }

absl::Status ApplyFlags(const FlagValues& flags, v1::JobSpec* spec) {
  for (const auto& [name, value] : flags) RETURN_IF_ERROR(Named(name, ApplyFlag(name, value, spec)));
  const auto parallelism = flags.find("parallelism");
  const auto bytes = flags.find("bytes");
  if (bytes != flags.end() && parallelism == flags.end()) return absl::InvalidArgumentError("--bytes: needs --parallelism");
  if (parallelism != flags.end()) {
    auto dimensions = ParseParallelism(parallelism->second, bytes == flags.end() ? "" : bytes->second);
    RETURN_IF_ERROR(Named("parallelism", dimensions.status()));
    spec->mutable_parallelism()->Assign(dimensions->begin(), dimensions->end());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, std::string>> ExportedEnvironment(absl::string_view export_flag,
                                                                       absl::Span<const std::pair<std::string, std::string>> environment) {
  std::map<std::string, std::string> exported;
  for (const absl::string_view item : absl::StrSplit(export_flag, ',', absl::SkipWhitespace())) {
    if (item == "NONE") continue;
    if (item == "ALL") {
      for (const auto& [name, value] : environment) {
        if (!IsReserved(name) && !IsShellState(name) && IsPlain(name, value)) exported[name] = value;
      }
      continue;
    }
    const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(item, absl::MaxSplits('=', 1));
    const auto& [name, value] = pair;
    if (IsReserved(name)) return absl::InvalidArgumentError(absl::StrCat("--export: ", name, " is set for each rank by the agent"));
    if (!IsPlain(name, value)) return absl::InvalidArgumentError(absl::StrCat("--export: '", item, "' is not NAME or NAME=value in UTF-8"));
    if (absl::StrContains(item, '=')) {
      exported[std::string(name)] = std::string(value);
      continue;
    }
    for (const auto& [known, current] : environment) {
      if (known == name) exported[known] = current;
    }
  }
  return exported;
}

}  // namespace closeknit
