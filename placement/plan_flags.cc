#include "placement/plan_flags.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/host_list.h"
#include "proto/base/status_macros.h"
#include "proto/base/text_values.h"

namespace closeknit {
namespace {

absl::Status BadFlag(absl::string_view flag, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, ": ", what));
}

absl::Status TakeLimits(const std::string& flag, const std::vector<std::string>& values,
                        google::protobuf::Map<std::string, uint32_t>* limits) {
  for (const std::string& value : values) {
    const absl::StatusOr<std::vector<std::pair<std::string, std::string>>> pairs = ParseKeyValues(value);
    if (!pairs.ok()) return BadFlag(flag, pairs.status().message());
    for (const auto& [tier, text] : *pairs) {
      const absl::StatusOr<uint32_t> count = ParseCount(text);
      if (!count.ok()) return BadFlag(flag, count.status().message());
      (*limits)[tier] = *count;
    }
  }
  return absl::OkStatus();
}

// What one word of a state file does to a host.
absl::Status Mark(absl::string_view word, HostId host, ClusterView* view) {
  if (word == "down") {
    view->SetUnavailable(host, view->status(host).unavailable | Unavailable::kDown);
  } else if (word == "drained") {
    view->SetUnavailable(host, view->status(host).unavailable | Unavailable::kDrained);
  } else if (word == "reserved") {
    view->SetUnavailable(host, view->status(host).unavailable | Unavailable::kReserved);
  } else if (int count = 0; absl::ConsumePrefix(&word, "rails_down=")) {
    if (!absl::SimpleAtoi(word, &count) || count < 0) return absl::InvalidArgumentError("rails_down= takes a number from 0");
    view->SetRailsDown(host, count);
  } else if (word == "busy" || absl::ConsumePrefix(&word, "gpus=")) {
    const int gpus = view->fabric().host(host).gpus;
    count = gpus;
    if (word != "busy" && (!absl::SimpleAtoi(word, &count) || count < 0 || count > gpus)) {
      return absl::InvalidArgumentError(absl::StrCat("gpus= takes a number from 0 to ", gpus));
    }
    return view->Allocate(host, {.job = 1, .attempt = 1, .gpus = GpuSet::First(count)});
  } else {
    return absl::InvalidArgumentError(absl::StrCat("'", word, "' is no state; busy, down, drained, reserved, gpus=N, rails_down=N"));
  }
  return absl::OkStatus();
}

absl::Status ApplyLine(absl::string_view line, ClusterView* view) {
  const std::vector<absl::string_view> words = absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.empty()) return absl::OkStatus();
  if (words.size() < 2) return absl::InvalidArgumentError("a host list and its state are needed, e.g. 'h[1-4] busy'");
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandHostList(words[0]));
  for (const std::string& name : names) {
    const std::optional<HostId> host = view->fabric().FindHost(name);
    if (!host.has_value()) return absl::InvalidArgumentError(absl::StrCat("no host '", name, "' in the fabric"));
    for (size_t i = 1; i < words.size(); ++i) RETURN_IF_ERROR(Mark(words[i], *host, view));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadWholeFile(const std::string& flag, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream contents;
  if (file) contents << file.rdbuf();
  if (!file) return BadFlag(flag, absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  return contents.str();
}

absl::StatusOr<std::vector<std::string>> HostsOfFlag(const std::string& flag, const std::string& value) {
  std::string text = value;
  if (absl::StartsWith(value, "@")) {
    ASSIGN_OR_RETURN(text, ReadWholeFile(flag, value.substr(1)));
  }
  absl::StatusOr<std::vector<std::string>> hosts = ExpandHostList(text);
  if (!hosts.ok()) return BadFlag(flag, hosts.status().message());
  return hosts;
}

absl::StatusOr<v1::PlanRequest> ToPlanRequest(const PlanFlags& flags) {
  v1::PlanRequest request;
  request.set_nodes(flags.nodes);
  request.set_gpus_per_node(flags.gpus_per_node);
  request.set_ranks_per_node(flags.ranks_per_node);
  request.set_spares(flags.spares);
  v1::PlacementConstraints& constraints = *request.mutable_constraints();
  constraints.set_required_tier(flags.require);
  constraints.set_allow_degraded(flags.allow_degraded);
  if (!flags.exclude.empty()) constraints.add_exclude(flags.exclude);
  if (!flags.nodelist.empty()) constraints.add_nodelist(flags.nodelist);
  RETURN_IF_ERROR(TakeLimits("max-domains", flags.max_domains, constraints.mutable_max_domains()));
  RETURN_IF_ERROR(TakeLimits("multiple-of", flags.multiple_of, constraints.mutable_multiple_of()));
  if (flags.objective == "time") constraints.set_objective(v1::OBJECTIVE_TIME);
  if (!flags.bytes.empty() && flags.parallelism.empty()) return BadFlag("bytes", "needs --parallelism");
  if (!flags.parallelism.empty()) {
    const absl::StatusOr<std::vector<v1::ParallelDimension>> dimensions = ParseParallelism(flags.parallelism, flags.bytes);
    if (!dimensions.ok()) return BadFlag("parallelism", dimensions.status().message());
    request.mutable_parallelism()->Assign(dimensions->begin(), dimensions->end());
  }
  if (!flags.evaluate.empty()) {
    ASSIGN_OR_RETURN(const std::vector<std::string> hosts, HostsOfFlag("evaluate", flags.evaluate));
    request.mutable_evaluate_hosts()->Assign(hosts.begin(), hosts.end());
    request.set_nodes(static_cast<uint32_t>(hosts.size()));
  }
  return request;
}

absl::Status ApplyState(const PlanFlags& flags, ClusterView* view) {
  if (!flags.busy.empty()) {
    ASSIGN_OR_RETURN(const std::vector<std::string> hosts, HostsOfFlag("busy", flags.busy));
    for (const std::string& name : hosts) {
      const std::optional<HostId> host = view->fabric().FindHost(name);
      if (!host.has_value()) return BadFlag("busy", absl::StrCat("no host '", name, "' in the fabric"));
      if (const absl::Status status = Mark("busy", *host, view); !status.ok()) return BadFlag("busy", status.message());
    }
  }
  if (flags.state.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string contents, ReadWholeFile("state", flags.state));
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(contents, '\n')) {
    ++number;
    const absl::Status status = ApplyLine(line, view);
    if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat(flags.state, ":", number, ": ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace closeknit
