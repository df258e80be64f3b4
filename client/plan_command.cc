#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/commands.h"
#include "proto/base/host_list.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

absl::StatusOr<v1::PlanRequest> BuildPlanRequest(const PlanOptions& options) {
  v1::JobSpec spec;
  RETURN_IF_ERROR(ApplyFlags(options.flags, &spec));
  v1::PlanRequest request;
  request.set_nodes(spec.nodes());
  request.set_gpus_per_node(spec.gpus_per_node());
  request.set_ranks_per_node(spec.ranks_per_node());
  *request.mutable_parallelism() = spec.parallelism();
  *request.mutable_constraints() = spec.constraints();
  request.set_spares(spec.spares());
  if (!options.evaluate.empty()) {
    ASSIGN_OR_RETURN(const std::vector<std::string> hosts, ExpandHostList(options.evaluate));
    request.mutable_evaluate_hosts()->Assign(hosts.begin(), hosts.end());
    request.set_nodes(static_cast<uint32_t>(hosts.size()));
  }
  return request;
}

std::string PlanText(const v1::PlanResponse& plan) {
  if (!plan.feasible()) {
    return absl::StrCat("infeasible: ", plan.why(),
                        plan.nearest().change().empty() ? "" : absl::StrCat("\nnearest: ", plan.nearest().change()), "\n");
  }
  std::string text =
      absl::StrCat("hosts   ", FoldHostList(std::vector<std::string>(plan.hosts().begin(), plan.hosts().end())), "  (in rank order)\n");
  if (!plan.spares().empty()) absl::StrAppend(&text, "spares  ", absl::StrJoin(plan.spares(), ","), "\n");
  for (const auto& [tier, bytes] : std::map<std::string, double>(plan.traffic_bytes().begin(), plan.traffic_bytes().end())) {
    const auto domains = plan.domains().find(tier);
    const auto bound = plan.lower_bound_bytes().find(tier);
    absl::StrAppendFormat(&text, "%-7s %s a step", tier, BytesText(bytes));
    if (bound != plan.lower_bound_bytes().end()) absl::StrAppend(&text, ", at least ", BytesText(bound->second));
    if (domains != plan.domains().end()) absl::StrAppend(&text, ", ", domains->second, " domains");
    text += "\n";
  }
  absl::StrAppend(&text, plan.proven_optimal() ? "proven optimal" : absl::StrFormat("gap %.1f %%", plan.gap() * 100));
  absl::StrAppendFormat(&text, ", searched for %.1f ms\n", plan.search_ms());
  if (!plan.why().empty()) absl::StrAppend(&text, plan.why(), "\n");
  return text;
}

}  // namespace

int Plan(Session& session, const PlanOptions& options) {
  const Output& output = session.output;
  const auto request = BuildPlanRequest(options);
  if (!request.ok()) return Fail(output, request.status());
  const auto plan = session.connection->Call(session.connection->placement(), &v1::PlacementService::Stub::Plan, *request);
  if (!plan.ok()) return Fail(output, plan.status());
  if (output.structured())
    PrintMessage(output, *plan);
  else
    *output.out << PlanText(*plan) << std::flush;
  return plan->feasible() ? kOk : kInfeasible;
}

int ExecPlan(const Output& output, const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  static const std::string kProgram = "knit-plan";
  argv.push_back(const_cast<char*>(kProgram.c_str()));
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) execv((self.parent_path() / kProgram).c_str(), argv.data());
  execvp(kProgram.c_str(), argv.data());
  return Fail(output, absl::NotFoundError(absl::StrCat("cannot run knit-plan, beside knit or on the PATH: ", std::strerror(errno))));
}

}  // namespace closeknit
