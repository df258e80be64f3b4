#include "scheduler/placement_service.h"

#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "placement/evaluate.h"
#include "placement/from_proto.h"
#include "placement/place.h"
#include "proto/base/errors.h"
#include "proto/base/host_list.h"
#include "proto/base/status_macros.h"
#include "scheduler/service_call.h"

namespace closeknit {
namespace {

// The hosts of evaluate_hosts, in slot order.
absl::StatusOr<std::vector<HostId>> HostsOf(const v1::PlanRequest& request, const Fabric& fabric) {
  std::vector<HostId> hosts;
  for (int i = 0; i < request.evaluate_hosts_size(); ++i) {
    const std::string field = absl::StrCat("evaluate_hosts[", i, "]");
    const absl::StatusOr<std::vector<std::string>> names = ExpandHostList(request.evaluate_hosts(i));
    if (!names.ok()) return InvalidField(field, names.status().message());
    for (const std::string& name : *names) {
      const std::optional<HostId> host = fabric.FindHost(name);
      if (!host.has_value()) return InvalidField(field, absl::StrCat("no host '", name, "' in the fabric"));
      hosts.push_back(*host);
    }
  }
  return hosts;
}

// The cost of a given map.
absl::StatusOr<v1::PlanResponse> Evaluate(const Fabric& fabric, v1::PlanRequest request) {
  ASSIGN_OR_RETURN(const std::vector<HostId> hosts, HostsOf(request, fabric));
  request.set_nodes(static_cast<uint32_t>(hosts.size()));
  ASSIGN_OR_RETURN(const GangRequest gang, ToGangRequest(request, fabric));
  Placement placement;
  ASSIGN_OR_RETURN(placement.traffic, EvaluateTraffic(fabric, gang, hosts));
  placement.hosts = hosts;
  for (Tier tier = 1; tier <= fabric.top(); ++tier) {
    absl::flat_hash_set<DomainId> used;
    for (const HostId host : hosts) used.insert(fabric.DomainOf(host, tier));
    placement.domains[tier] = static_cast<int>(used.size());
  }
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
  const absl::Time start = absl::Now();
  const absl::StatusOr<Placement> placement = Place(view, gang);
  const absl::Duration elapsed = absl::Now() - start;
  if (absl::IsInvalidArgument(placement.status())) return placement.status();
  v1::PlanResponse response = ToPlanResponse(placement, view.fabric());
  response.set_search_ms(absl::ToDoubleMilliseconds(elapsed));
  return response;
}

}  // namespace

grpc::ServerUnaryReactor* PlacementService::Plan(grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
                                                 grpc::ByteBuffer* response) {
  auto request = std::make_shared<v1::PlanRequest>();
  if (const absl::Status status = ParseRequest(*bytes, request.get()); !status.ok()) return FinishNow(context, status);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  loop_->Call(TakeSnapshot{}, [this, request, reactor, response](absl::StatusOr<ReplyMessage> reply) {
    if (!reply.ok()) return FinishWith(reactor, response, reply.status());
    auto view = std::get<std::shared_ptr<const ClusterView>>(*std::move(reply));
    const bool accepted = workers_->Run([request, reactor, response, view = std::move(view)] {
      const absl::StatusOr<v1::PlanResponse> plan =
          request->evaluate_hosts().empty() ? Search(*view, *request) : Evaluate(view->fabric(), *request);
      if (!plan.ok()) return FinishWith(reactor, response, plan.status());
      FinishWith(reactor, response, &*plan);
    });
    if (!accepted) FinishWith(reactor, response, RetryAfter(absl::Seconds(1), "too many plans wait already"));
  });
  return reactor;
}

}  // namespace closeknit
