// knit-plan: where a gang would go and what that costs, from files alone. What `knit plan --topology FILE` runs.
#include <google/protobuf/util/json_util.h>

#include <chrono>
#include <iostream>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cluster_model/readers.h"
#include "placement/evaluate.h"
#include "placement/from_proto.h"
#include "placement/measure.h"
#include "placement/place.h"
#include "placement/plan_flags.h"
#include "proto/base/host_list.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr int kFeasible = 0, kBadInput = 2, kInfeasible = 3;

absl::StatusOr<v1::PlanResponse> Evaluate(const Fabric& fabric, const v1::PlanRequest& request) {
  ASSIGN_OR_RETURN(const GangRequest gang, ToGangRequest(request, fabric));
  Placement placement;
  for (const std::string& name : request.evaluate_hosts()) {
    const std::optional<HostId> host = fabric.FindHost(name);
    if (!host.has_value()) return absl::InvalidArgumentError(absl::StrCat("--evaluate: no host '", name, "' in the fabric"));
    placement.hosts.push_back(*host);
  }
  ASSIGN_OR_RETURN(placement.traffic, EvaluateTraffic(fabric, gang, placement.hosts));
  placement.domains = CountDomains(fabric, placement.hosts);
  placement.reason = "the map that was given";
  v1::PlanResponse response = ToPlanResponse(placement, fabric);
  // Nothing was searched: there is no bound to compare with.
  response.clear_lower_bound_bytes();
  response.clear_proven_optimal();
  response.clear_gap();
  return response;
}

absl::StatusOr<v1::PlanResponse> Search(const ClusterView& view, const v1::PlanRequest& request) {
  ASSIGN_OR_RETURN(const GangRequest gang, ToGangRequest(request, view.fabric()));
  const auto start = std::chrono::steady_clock::now();
  const absl::StatusOr<Placement> placement = Place(view, gang);
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  if (absl::IsInvalidArgument(placement.status())) return placement.status();
  v1::PlanResponse response = ToPlanResponse(placement, view.fabric());
  response.set_search_ms(elapsed.count());
  return response;
}

absl::StatusOr<v1::PlanResponse> Plan(const PlanFlags& flags) {
  ASSIGN_OR_RETURN(const std::string description, ReadWholeFile("topology", flags.topology));
  ASSIGN_OR_RETURN(Fabric fabric, ReadFabric(description, flags.topology));
  ClusterView view(std::make_shared<const Fabric>(std::move(fabric)));
  RETURN_IF_ERROR(ApplyState(flags, &view));
  ASSIGN_OR_RETURN(const v1::PlanRequest request, ToPlanRequest(flags));
  return request.evaluate_hosts().empty() ? Search(view, request) : Evaluate(view.fabric(), request);
}

std::string Json(const v1::PlanResponse& plan) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  (void)google::protobuf::util::MessageToJsonString(plan, &text, options);  // fails for messages that cannot be made here only
  return text + "\n";
}

std::string Text(const v1::PlanResponse& plan, const PlanFlags& flags) {
  if (!plan.feasible()) {
    return absl::StrCat("infeasible: ", plan.why(), "\n",
                        plan.nearest().change().empty() ? "" : absl::StrCat("nearest: ", plan.nearest().change(), "\n"));
  }
  std::string text =
      absl::StrCat("hosts   ", FoldHostList(std::vector<std::string>(plan.hosts().begin(), plan.hosts().end())), "  (in rank order)\n");
  if (!plan.spares().empty())
    absl::StrAppend(&text, "spares  ", FoldHostList(std::vector<std::string>(plan.spares().begin(), plan.spares().end())), "\n");
  for (const auto& [tier, bytes] : std::map<std::string, double>(plan.traffic_bytes().begin(), plan.traffic_bytes().end())) {
    absl::StrAppendFormat(&text, "%-7s %.6g bytes a step", tier, bytes);
    if (const auto bound = plan.lower_bound_bytes().find(tier); bound != plan.lower_bound_bytes().end()) {
      absl::StrAppendFormat(&text, ", at least %.6g", bound->second);
    }
    if (const auto domains = plan.domains().find(tier); domains != plan.domains().end()) {
      absl::StrAppend(&text, ", ", domains->second, " domains");
    }
    text += "\n";
  }
  if (flags.evaluate.empty()) {
    absl::StrAppend(&text, plan.proven_optimal() ? "proven optimal" : absl::StrFormat("gap %.1f %%", 100 * plan.gap()));
    absl::StrAppendFormat(&text, ", searched for %.2f ms\n", plan.search_ms());
  }
  return absl::StrCat(text, plan.why(), "\n");
}

void AddFlags(CLI::App& app, PlanFlags* flags) {
  app.add_option("--topology", flags->topology, "Closeknit's YAML, Slurm's topology.conf or topology.yaml, or ibnetdiscover's output")
      ->required();
  app.add_option("--busy", flags->busy, "hosts that are taken: h[1-4,9], or @FILE with one a line");
  app.add_option("--state", flags->state, "file with a host list and its state a line: busy, down, drained, gpus=N, rails_down=N");
  app.add_option("-N,--nodes", flags->nodes, "hosts of the gang");
  app.add_option("--gpus-per-node", flags->gpus_per_node, "GPUs on each")->capture_default_str();
  app.add_option("--ranks-per-node", flags->ranks_per_node, "ranks on each; 0: one a GPU")->capture_default_str();
  app.add_option("--parallelism", flags->parallelism, "dimensions, innermost first: tp=8,pp=4,dp=16");
  app.add_option("--bytes", flags->bytes, "bytes a rank sends to its neighbour per step: pp=537M,dp=18.8G,pp_wrap=1G");
  app.add_option("--require", flags->require, "all hosts in one domain of this tier");
  app.add_option("--max-domains", flags->max_domains, "TIER=K: at most so many domains of a tier");
  app.add_option("--multiple-of", flags->multiple_of, "TIER=K: each domain used gives a multiple of so many hosts");
  app.add_option("--exclude", flags->exclude, "hosts never used");
  app.add_option("-w,--nodelist", flags->nodelist, "hosts to choose from");
  app.add_option("--spares", flags->spares, "further hosts near the gang")->capture_default_str();
  app.add_flag("--allow-degraded", flags->allow_degraded, "use hosts with a rail down as well");
  app.add_option("--objective", flags->objective, "top-first or time")->check(CLI::IsMember({"top-first", "time"}))->capture_default_str();
  app.add_option("--evaluate", flags->evaluate, "cost of these hosts in slot order instead of a search; list or @FILE");
  app.add_option("-o,--output", flags->format, "text or json")->check(CLI::IsMember({"text", "json"}))->capture_default_str();
}

int Run(int argc, char** argv) {
  PlanFlags flags;
  CLI::App app("Where a gang would go, and what that costs, without a scheduler", "knit plan");
  app.footer(
      "Examples:\n  knit plan --topology topology.conf --busy 'h[001-064,099]' --nodes 96 --require pod\n"
      "  knit plan --topology cluster.yaml --nodes 2048 --parallelism tp=8,pp=16,dp=128 --bytes tp=237G,pp=537M,dp=18.8G -o json\n\n"
      "Exit codes: 0 feasible, 3 infeasible, 2 bad input.");
  AddFlags(app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kFeasible : kBadInput;
  }
  const absl::StatusOr<v1::PlanResponse> plan = Plan(flags);
  if (!plan.ok()) {
    std::cerr << "knit plan: " << plan.status().message() << "\n";
    return kBadInput;
  }
  std::cout << (flags.format == "json" ? Json(*plan) : Text(*plan, flags)) << std::flush;
  return plan->feasible() ? kFeasible : kInfeasible;
}

}  // namespace
}  // namespace closeknit

int main(int argc, char** argv) { return closeknit::Run(argc, argv); }
