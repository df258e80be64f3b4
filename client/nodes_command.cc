#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/commands.h"
#include "proto/base/host_list.h"
#include "proto/base/proto_time.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

absl::StatusOr<v1::ListNodesResponse> ListAll(Connection& connection, v1::ListNodesRequest request) {
  v1::ListNodesResponse all;
  do {
    ASSIGN_OR_RETURN(v1::ListNodesResponse page, connection.Call(connection.nodes(), &v1::NodeService::Stub::ListNodes, request));
    for (v1::Node& node : *page.mutable_nodes()) *all.add_nodes() = std::move(node);
    all.set_total_size(page.total_size());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return all;
}

std::string Jobs(const v1::Node& node) {
  return absl::StrJoin(node.allocations(), ",",
                       [](std::string* out, const v1::NodeAllocation& allocation) { absl::StrAppend(out, allocation.job_id()); });
}

std::string Reason(const v1::Node& node) {
  std::string reason = node.reason();
  if (reason.empty()) reason = absl::StrJoin(node.conditions(), "; ");
  if (!node.reason_user().empty()) absl::StrAppend(&reason, " (", node.reason_user(), ")");
  return reason;
}

// sinfo's summary: one line a state.
Table Summary(const v1::ListNodesResponse& list) {
  struct Group {
    std::vector<std::string> names;
    uint64_t gpus = 0, free = 0;
  };
  std::map<v1::NodeState, Group> groups;
  for (const v1::Node& node : list.nodes()) {
    Group& group = groups[node.state()];
    group.names.push_back(node.name());
    group.gpus += node.gpus_total();
    group.free += node.gpus_free();
  }
  Table table({{"STATE"}, {"NODES", Align::kRight}, {"GPUS", Align::kRight}, {"FREE", Align::kRight}, {"NODELIST"}});
  for (auto& [state, group] : groups) {
    table.Row({StateName(state), absl::StrCat(group.names.size()), absl::StrCat(group.gpus), absl::StrCat(group.free),
               FoldHostSet(std::move(group.names))});
  }
  return table;
}

Table Each(const v1::ListNodesResponse& list, const Output& output) {
  std::vector<Table::Column> columns = {{"NODE"}, {"STATE"}, {"GPUS", Align::kRight}, {"FREE", Align::kRight}, {"DOMAINS"}, {"JOBS"}};
  if (output.wide()) columns.insert(columns.end(), {{"ADDRESS"}, {"AGENT"}, {"LAST SEEN"}, {"FEATURES"}});
  columns.push_back({"REASON"});
  Table table(columns);
  for (const v1::Node& node : list.nodes()) {
    std::vector<std::string> row = {node.name(),
                                    StateName(node.state()),
                                    absl::StrCat(node.gpus_total()),
                                    absl::StrCat(node.gpus_free()),
                                    absl::StrJoin(node.domains(), "/"),
                                    Jobs(node)};
    if (output.wide()) {
      row.insert(row.end(), {node.address(), node.agent_version(), ClockTime(FromProtoTime(node.last_seen_time())),
                             absl::StrJoin(node.features(), ",")});
    }
    row.push_back(Reason(node));
    table.Row(std::move(row));
  }
  return table;
}

std::string NodeText(const v1::Node& node) {
  std::string text = absl::StrFormat("Node %s  %s\n", node.name(), StateName(node.state()));
  absl::StrAppendFormat(&text, "  domains    %s\n", absl::StrJoin(node.domains(), " / "));
  absl::StrAppendFormat(&text, "  GPUs       %u, %u free\n", node.gpus_total(), node.gpus_free());
  absl::StrAppendFormat(&text, "  address    %s, agent %s, last seen %s\n", node.address(), node.agent_version(),
                        ClockTime(FromProtoTime(node.last_seen_time())));
  if (!node.reason().empty()) {
    absl::StrAppendFormat(&text, "  reason     %s (%s, %s)\n", Printable(node.reason()), Printable(node.reason_user()),
                          ClockTime(FromProtoTime(node.reason_time())));
  }
  for (const std::string& condition : node.conditions()) absl::StrAppend(&text, "  condition  ", Printable(condition), "\n");
  for (const v1::NodeAllocation& allocation : node.allocations()) {
    absl::StrAppendFormat(&text, "  job        %u, attempt %u, GPUs %s\n", allocation.job_id(), allocation.attempt(),
                          absl::StrJoin(allocation.gpus(), ","));
  }
  for (const v1::Gpu& gpu : node.gpus()) {
    absl::StrAppendFormat(&text, "  GPU %-2u     %s %s\n", gpu.index(), gpu.name().empty() ? "simulated" : Printable(gpu.name()),
                          gpu.uuid());
  }
  return text;
}

// Prints what drain and resume answer: the nodes as they are now.
template <typename Response>
int PrintNodes(const Output& output, const absl::StatusOr<Response>& response) {
  if (!response.ok()) return Fail(output, response.status());
  if (output.structured()) {
    PrintMessage(output, *response);
    return kOk;
  }
  for (const v1::Node& node : response->nodes()) *output.out << node.name() << " is " << StateName(node.state()) << "\n";
  *output.out << std::flush;
  return kOk;
}

}  // namespace

int Nodes(Session& session, const NodesOptions& options) {
  const Output& output = session.output;
  v1::ListNodesRequest request;
  const auto states = ParseNodeStates(options.states);
  if (!states.ok()) return Fail(output, states.status());
  for (const v1::NodeState state : *states) request.add_states(state);
  if (!options.nodes.empty()) request.add_nodes(options.nodes);
  request.set_domain(options.domain);
  const auto list = ListAll(*session.connection, request);
  if (!list.ok()) return Fail(output, list.status());
  if (output.structured())
    PrintMessage(output, *list);
  else
    PrintTable(output, options.each || output.wide() ? Each(*list, output) : Summary(*list));
  return kOk;
}

int ShowNode(Session& session, const std::string& name) {
  const Output& output = session.output;
  v1::GetNodeRequest request;
  request.set_name(name);
  const auto node = session.connection->Call(session.connection->nodes(), &v1::NodeService::Stub::GetNode, request);
  if (!node.ok()) return Fail(output, node.status());
  if (output.structured())
    PrintMessage(output, *node);
  else
    *output.out << NodeText(*node) << std::flush;
  return kOk;
}

int Drain(Session& session, const std::vector<std::string>& nodes, const std::string& reason) {
  v1::DrainNodesRequest request;
  request.mutable_nodes()->Assign(nodes.begin(), nodes.end());
  request.set_reason(reason);
  request.set_user(CallerName());
  return PrintNodes(session.output, session.connection->Call(session.connection->nodes(), &v1::NodeService::Stub::DrainNodes, request));
}

int Resume(Session& session, const std::vector<std::string>& nodes) {
  v1::ResumeNodesRequest request;
  request.mutable_nodes()->Assign(nodes.begin(), nodes.end());
  request.set_user(CallerName());
  return PrintNodes(session.output, session.connection->Call(session.connection->nodes(), &v1::NodeService::Stub::ResumeNodes, request));
}

}  // namespace closeknit
