#include "placement/from_proto.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/errors.h"
#include "proto/base/host_list.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr int64_t kMaxRanks = int64_t{1} << 30;
constexpr uint32_t kMaxSpares = 10'000;

absl::StatusOr<Tier> ToTier(const Fabric& fabric, const std::string& field, const std::string& name) {
  const std::optional<Tier> tier = fabric.FindTier(name);
  if (!tier.has_value()) return InvalidField(field, absl::StrCat("no tier '", name, "' in the fabric; it has ", fabric.TierNames()));
  return *tier;
}

absl::StatusOr<std::vector<HostId>> ToHosts(const Fabric& fabric, const std::string& field,
                                            const google::protobuf::RepeatedPtrField<std::string>& lists) {
  std::vector<HostId> hosts;
  for (int i = 0; i < lists.size(); ++i) {
    const absl::StatusOr<std::vector<std::string>> names = ExpandHostList(lists[i]);
    if (!names.ok()) return InvalidField(absl::StrCat(field, "[", i, "]"), names.status().message());
    for (const std::string& name : *names) {
      const std::optional<HostId> host = fabric.FindHost(name);
      if (!host.has_value()) return InvalidField(absl::StrCat(field, "[", i, "]"), absl::StrCat("no host '", name, "' in the fabric"));
      hosts.push_back(*host);
    }
  }
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return hosts;
}

absl::StatusOr<absl::flat_hash_map<Tier, int>> ToLimits(const Fabric& fabric, const std::string& field,
                                                        const google::protobuf::Map<std::string, uint32_t>& limits) {
  absl::flat_hash_map<Tier, int> by_tier;
  // In key order: which of two errors is told must not depend on hashing.
  for (const auto& [name, limit] : std::map<std::string, uint32_t>(limits.begin(), limits.end())) {
    const std::string entry = absl::StrCat(field, "[", name, "]");
    ASSIGN_OR_RETURN(const Tier tier, ToTier(fabric, entry, name));
    if (limit < 1 || limit > 1'000'000) return InvalidField(entry, absl::StrCat(limit, " is out of range; 1..1000000"));
    by_tier[tier] = static_cast<int>(limit);
  }
  return by_tier;
}

absl::Status TakeConstraints(const v1::PlacementConstraints& constraints, const Fabric& fabric, GangRequest* request) {
  if (!constraints.required_tier().empty()) {
    ASSIGN_OR_RETURN(request->required_tier, ToTier(fabric, "constraints.required_tier", constraints.required_tier()));
  }
  ASSIGN_OR_RETURN(request->max_domains, ToLimits(fabric, "constraints.max_domains", constraints.max_domains()));
  ASSIGN_OR_RETURN(request->multiple_of, ToLimits(fabric, "constraints.multiple_of", constraints.multiple_of()));
  ASSIGN_OR_RETURN(request->exclude, ToHosts(fabric, "constraints.exclude", constraints.exclude()));
  if (!constraints.nodelist().empty()) {
    ASSIGN_OR_RETURN(request->nodelist, ToHosts(fabric, "constraints.nodelist", constraints.nodelist()));
  }
  request->features.assign(constraints.features().begin(), constraints.features().end());
  std::sort(request->features.begin(), request->features.end());
  request->allow_degraded = constraints.allow_degraded();
  if (constraints.objective() == v1::OBJECTIVE_TIME) {
    if (!fabric.StatesCapacities()) {
      return InvalidField("constraints.objective", "time needs a fabric that states the capacity of every uplink and NIC");
    }
    request->objective = ObjectiveKind::kTime;
  }
  return absl::OkStatus();
}

absl::StatusOr<Dimension> ToDimension(const std::string& field, const v1::ParallelDimension& from) {
  static const std::map<std::string, Pattern> kPatterns = {
      {"tp", Pattern::kRing}, {"cp", Pattern::kRing}, {"dp", Pattern::kRing}, {"ep", Pattern::kAllToAll}, {"pp", Pattern::kChain}};
  Dimension dimension;
  const auto pattern = kPatterns.find(from.name());
  if (pattern == kPatterns.end()) {
    return InvalidField(absl::StrCat(field, ".name"), absl::StrCat("no dimension '", from.name(), "'; tp, cp, ep, pp or dp"));
  }
  dimension.name = from.name();
  dimension.pattern = pattern->second;
  if (from.degree() < 1 || from.degree() > kMaxRanks) {
    return InvalidField(absl::StrCat(field, ".degree"), absl::StrCat(from.degree(), " is out of range; 1..", kMaxRanks));
  }
  dimension.degree = static_cast<int>(from.degree());
  const auto is_bytes = [](double value) { return value >= 0 && value <= 1e18; };
  if (!is_bytes(from.bytes())) return InvalidField(absl::StrCat(field, ".bytes"), "is negative, above 1e18, or no number");
  if (!is_bytes(from.wrap_bytes())) return InvalidField(absl::StrCat(field, ".wrap_bytes"), "is negative, above 1e18, or no number");
  dimension.bytes = from.bytes() == 0 ? 1 : from.bytes();
  dimension.wrap_bytes = from.wrap_bytes();
  if (from.pattern() == v1::COMMUNICATION_PATTERN_RING) dimension.pattern = Pattern::kRing;
  if (from.pattern() == v1::COMMUNICATION_PATTERN_CHAIN) dimension.pattern = Pattern::kChain;
  if (from.pattern() == v1::COMMUNICATION_PATTERN_ALL_TO_ALL) dimension.pattern = Pattern::kAllToAll;
  if (from.wrap_bytes() > 0 && from.name() != "pp") {
    return InvalidField(absl::StrCat(field, ".wrap_bytes"), absl::StrCat("is for pp only, not ", from.name()));
  }
  return dimension;
}

absl::Status TakeDimensions(const google::protobuf::RepeatedPtrField<v1::ParallelDimension>& dimensions, GangRequest* request) {
  int64_t product = 1;
  const int64_t ranks = int64_t{request->slots} * request->ranks_per_slot;
  for (int i = 0; i < dimensions.size(); ++i) {
    const std::string field = absl::StrCat("parallelism[", i, "]");
    ASSIGN_OR_RETURN(Dimension dimension, ToDimension(field, dimensions[i]));
    for (const Dimension& other : request->dimensions) {
      if (other.name == dimension.name) return InvalidField(absl::StrCat(field, ".name"), absl::StrCat(dimension.name, " is given twice"));
    }
    product = std::min<int64_t>(product * dimension.degree, std::numeric_limits<int32_t>::max() * int64_t{2});
    request->dimensions.push_back(std::move(dimension));
  }
  if (dimensions.empty() || product == ranks) return absl::OkStatus();
  return InvalidField("parallelism", absl::StrCat("the degrees multiply to ", product, ", the gang has ", ranks, " ranks (", request->slots,
                                                  " hosts with ", request->ranks_per_slot, " each)"));
}

struct Size {
  uint32_t nodes, gpus, ranks, spares;
};
absl::Status TakeSize(const Size& size, GangRequest* request) {
  if (size.nodes < 1 || size.nodes > 1'000'000) return InvalidField("nodes", absl::StrCat(size.nodes, " is out of range; 1..1000000"));
  if (size.gpus > 64) return InvalidField("gpus_per_node", absl::StrCat(size.gpus, " is out of range; 0..64"));
  const int64_t per_slot = size.ranks != 0 ? size.ranks : std::max<uint32_t>(size.gpus, 1);
  if (per_slot * size.nodes > kMaxRanks) {
    return InvalidField("ranks_per_node", absl::StrCat(per_slot, " ranks on each of ", size.nodes, " hosts are more than ", kMaxRanks));
  }
  if (size.spares > kMaxSpares) return InvalidField("spares", absl::StrCat(size.spares, " is out of range; 0..", kMaxSpares));
  request->slots = static_cast<int>(size.nodes);
  request->gpus_per_slot = static_cast<int>(size.gpus);
  request->ranks_per_slot = static_cast<int>(per_slot);
  request->spares = static_cast<int>(size.spares);
  return absl::OkStatus();
}

template <typename Value, typename Map>
void PutTiers(const Fabric& fabric, const std::array<Value, kMaxTiers + 1>& values, Tier first, Tier last, Map* map) {
  for (Tier t = first; t <= last; ++t) (*map)[t == 0 ? "host" : std::string(fabric.TierName(t))] = values[t];
}

template <typename Message>
void PutFigures(const Placement& placement, const Fabric& fabric, Message* message) {
  for (const HostId host : placement.hosts) message->add_hosts(fabric.host(host).name);
  for (const HostId host : placement.spares) message->add_spares(fabric.host(host).name);
  PutTiers(fabric, placement.traffic, 0, fabric.top() - 1, message->mutable_traffic_bytes());
  PutTiers(fabric, placement.lower_bound, 0, fabric.top() - 1, message->mutable_lower_bound_bytes());
  PutTiers(fabric, placement.domains, 1, fabric.top(), message->mutable_domains());
  message->set_proven_optimal(placement.proven_optimal());
  message->set_gap(placement.gap);
  message->set_why(placement.reason);
}

}  // namespace

absl::StatusOr<GangRequest> ToGangRequest(const v1::JobSpec& spec, const Fabric& fabric) {
  GangRequest request;
  RETURN_IF_ERROR(TakeSize({spec.nodes(), spec.gpus_per_node(), spec.ranks_per_node(), spec.spares()}, &request));
  if (!spec.partition().empty()) request.partition = spec.partition();
  RETURN_IF_ERROR(TakeConstraints(spec.constraints(), fabric, &request));
  RETURN_IF_ERROR(TakeDimensions(spec.parallelism(), &request));
  return request;
}

absl::StatusOr<GangRequest> ToGangRequest(const v1::PlanRequest& plan, const Fabric& fabric) {
  GangRequest request;
  const uint32_t gpus = plan.gpus_per_node() == 0 ? 8 : plan.gpus_per_node();
  RETURN_IF_ERROR(TakeSize({plan.nodes(), gpus, plan.ranks_per_node(), plan.spares()}, &request));
  RETURN_IF_ERROR(TakeConstraints(plan.constraints(), fabric, &request));
  RETURN_IF_ERROR(TakeDimensions(plan.parallelism(), &request));
  return request;
}

v1::Placement ToProto(const Placement& placement, const Fabric& fabric) {
  v1::Placement message;
  PutFigures(placement, fabric, &message);
  return message;
}

v1::PlanResponse ToPlanResponse(const absl::StatusOr<Placement>& placement, const Fabric& fabric) {
  v1::PlanResponse response;
  if (placement.ok()) {
    response.set_feasible(true);
    PutFigures(*placement, fabric, &response);
    if (placement->busiest.has_value()) {
      response.mutable_predicted()->set_busiest_domain(fabric.domain(placement->busiest->domain).name);
      response.mutable_predicted()->set_bytes(placement->busiest->bytes);
      response.mutable_predicted()->set_seconds(placement->busiest->seconds);
    }
    return response;
  }
  const std::optional<Unplaceable> unplaceable = GetUnplaceable(placement.status());
  response.set_why(unplaceable.has_value() ? unplaceable->why : std::string(placement.status().message()));
  if (absl::IsFailedPrecondition(placement.status())) response.set_why(absl::StrCat("can never fit: ", response.why()));
  if (!unplaceable.has_value()) return response;
  response.mutable_nearest()->set_change(unplaceable->nearest);
  response.mutable_nearest()->set_nodes(static_cast<uint32_t>(unplaceable->fitting_slots));
  if (unplaceable->fitting_tier != 0) response.mutable_nearest()->set_tier(std::string(fabric.TierName(unplaceable->fitting_tier)));
  response.mutable_nearest()->set_domains(static_cast<uint32_t>(unplaceable->fitting_domains));
  return response;
}

}  // namespace closeknit
