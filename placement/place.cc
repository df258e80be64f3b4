#include "placement/place.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "placement/block_search.h"
#include "placement/explain.h"
#include "placement/gpus.h"
#include "placement/measure.h"
#include "placement/ring_search.h"
#include "placement/slot_graph.h"
#include "placement/usable.h"
#include "proto/base/errors.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

RingLimits LimitsOf(const Fabric& fabric, const GangRequest& request) {
  RingLimits limits;
  limits.scope = fabric.root();
  for (const auto& [tier, unit] : request.multiple_of) limits.multiple_of[tier] = unit;
  for (const auto& [tier, most] : request.max_domains) limits.max_domains[tier] = most;
  return limits;
}

absl::Status Check(const Fabric& fabric, const GangRequest& request) {
  if (request.slots < 1) return InvalidField("nodes", "0 is too small; at least 1");
  for (const auto& [tier, unit] : request.multiple_of) {
    if (unit > 0 && request.slots % unit == 0) continue;
    return InvalidField(absl::StrCat("constraints.multiple_of[", fabric.TierName(tier), "]"),
                        absl::StrCat(request.slots, " hosts are no multiple of ", unit));
  }
  return absl::OkStatus();
}

// The cheapest hosts for a ring, in the lowest tier that has a domain for all of them.
std::optional<HostSet> TakeNearest(const Usable& usable, const GangRequest& request, const RingLimits& limits) {
  const Fabric& fabric = usable.fabric();
  const Tier highest = request.required_tier.value_or(fabric.top());
  if (usable.Count(fabric.root()) < request.slots + request.spares) return std::nullopt;
  const SpareRoom spare = {.tier = highest, .hosts = request.spares};
  for (Tier tier = 1; tier <= highest; ++tier) {
    if (std::optional<HostSet> set = TakeHostsInOne(usable, limits, tier, request.slots, spare); set.has_value()) return set;
  }
  return std::nullopt;
}

// One host for a part of its GPUs: the one that is used most, so that whole hosts stay whole; then as for gangs. O(hosts).
std::optional<HostSet> TakePartOfHost(const Usable& usable, const GangRequest& request) {
  const Fabric& fabric = usable.fabric();
  if (usable.Count(fabric.root()) < 1 + request.spares) return std::nullopt;
  const ClusterView& view = usable.view();
  std::optional<HostId> best;
  std::array<int, kMaxTiers + 2> least{};
  for (const DomainId rack : fabric.DomainsAt(1)) {
    if (usable.Count(rack) == 0) continue;
    if (request.required_tier.has_value() &&
        usable.Count(fabric.DomainOf(fabric.domain(rack).first_host, *request.required_tier)) < 1 + request.spares) {
      continue;
    }
    // Free GPUs that would be left, whole-free domains that would be broken from the top down, usable hosts of its rack.
    std::array<int, kMaxTiers + 2> cost{};
    for (Tier t = fabric.top(); t >= 1; --t) {
      cost[1 + fabric.top() - t] = usable.WholeFree(fabric.DomainOf(fabric.domain(rack).first_host, t)) ? 1 : 0;
    }
    cost[kMaxTiers + 1] = usable.Count(rack);
    for (HostId host = fabric.domain(rack).first_host; host < fabric.domain(rack).end_host; ++host.value) {
      if (!usable.Is(host)) continue;
      cost[0] = view.status(host).free().size() - request.gpus_per_slot;
      if (best.has_value() && cost >= least) continue;
      best = host;
      least = cost;
    }
  }
  if (!best.has_value()) return std::nullopt;
  return HostSet{.hosts = {*best}};
}

// Usable hosts that the gang does not use, nearest first: those that would add the fewest domains if they stood in for a host of the gang,
// from the top tier down; then from the fullest racks. O(hosts * tiers).
std::vector<HostId> ChooseSpares(const Usable& usable, const GangRequest& request, const std::vector<HostId>& gang) {
  if (request.spares == 0) return {};
  const Fabric& fabric = usable.fabric();
  const absl::flat_hash_set<HostId> taken(gang.begin(), gang.end());
  absl::flat_hash_map<DomainId, int> held;  // hosts of the gang per domain
  for (const HostId host : gang) {
    for (Tier t = 1; t <= fabric.top(); ++t) ++held[fabric.DomainOf(host, t)];
  }
  struct Candidate {
    int strangers = 0;   // bit t: the gang has no host in the candidate's domain of tier t
    int neighbours = 0;  // hosts of the gang in its rack
    HostId host;
  };
  std::vector<Candidate> candidates;
  const Tier highest = request.required_tier.value_or(fabric.top());
  for (uint32_t h = 0; h < fabric.hosts().size(); ++h) {
    const HostId host{h};
    if (!usable.Is(host) || taken.contains(host)) continue;
    if (fabric.DomainOf(host, highest) != fabric.DomainOf(gang[0], highest)) continue;
    Candidate candidate = {.host = host};
    for (Tier t = 1; t <= fabric.top(); ++t) {
      if (!held.contains(fabric.DomainOf(host, t))) candidate.strangers |= 1 << t;
    }
    const auto rack = held.find(fabric.DomainOf(host, 1));
    candidate.neighbours = rack == held.end() ? 0 : rack->second;
    candidates.push_back(candidate);
  }
  const size_t count = std::min<size_t>(request.spares, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + count, candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::make_tuple(a.strangers, -a.neighbours, a.host) < std::make_tuple(b.strangers, -b.neighbours, b.host);
  });
  std::vector<HostId> spares;
  for (size_t i = 0; i < count; ++i) spares.push_back(candidates[i].host);
  return spares;
}

// Sets with whole replicas in each domain, where replicas are cut otherwise.
std::vector<HostSet> BlockSets(const Usable& usable, const GangRequest& request, const RingLimits& limits, HostSet nearest) {
  const Fabric& fabric = usable.fabric();
  const int columns = GridOf(request).columns;
  std::vector<HostSet> sets = {std::move(nearest)};
  if (columns == request.slots) return sets;
  for (Tier t = fabric.top() - 1; t >= 1; --t) {
    RingLimits whole = limits;
    if (whole.multiple_of[t] != 0) continue;
    whole.multiple_of[t] = columns;
    if (std::optional<HostSet> set = TakeNearest(usable, request, whole); set.has_value()) sets.push_back(*std::move(set));
  }
  return sets;
}

absl::StatusOr<Placement> PlaceBlocks(const Usable& usable, const GangRequest& request, const RingLimits& limits, HostSet nearest) {
  const Fabric& fabric = usable.fabric();
  ASSIGN_OR_RETURN(const SlotGraph graph, SlotGraph::Build(request));
  Placement placement;
  for (const HostSet& set : BlockSets(usable, request, limits, std::move(nearest))) {
    std::vector<HostId> hosts = OrderHosts(fabric, request, graph, set.hosts);
    const TierBytes traffic = graph.Traffic(fabric, hosts);
    const bool better = placement.hosts.empty() || (request.objective == ObjectiveKind::kTime && fabric.StatesCapacities()
                                                        ? BusiestUplink(fabric, graph, hosts).seconds < placement.busiest->seconds
                                                        : CompareTraffic(traffic, placement.traffic) < 0);
    if (!better) continue;
    placement.hosts = std::move(hosts);
    placement.traffic = traffic;
    if (fabric.StatesCapacities()) placement.busiest = BusiestUplink(fabric, graph, placement.hosts);
  }
  placement.lower_bound = LowerBound(usable, request);
  // Rounding must not make a bound that is met look missed, nor one that is missed look met.
  for (size_t s = 0; s < placement.traffic.size(); ++s) {
    if (std::abs(placement.traffic[s] - placement.lower_bound[s]) <= 1e-9 * placement.traffic[s])
      placement.lower_bound[s] = placement.traffic[s];
  }
  return placement;
}

absl::StatusOr<Placement> PlaceRing(const Usable& usable, const GangRequest& request, const PlainRing& ring, HostSet set) {
  const Fabric& fabric = usable.fabric();
  Placement placement;
  placement.hosts = std::move(set.hosts);
  placement.traffic[0] = ring.Bytes(request.slots);
  const std::array<int, kMaxTiers + 1> domains = CountDomains(fabric, placement.hosts);
  for (Tier s = 1; s < fabric.top(); ++s) placement.traffic[s] = ring.Bytes(domains[s]);
  placement.lower_bound = placement.traffic;
  if (!set.exact) {
    for (Tier s = 1; s < fabric.top(); ++s) placement.lower_bound[s] = ring.Bytes(FewestDomains(usable, s, request.slots));
  }
  if (!fabric.StatesCapacities() || request.slots == 1) return placement;
  ASSIGN_OR_RETURN(const SlotGraph graph, SlotGraph::Build(request));
  placement.busiest = BusiestUplink(fabric, graph, placement.hosts);
  return placement;
}

}  // namespace

absl::StatusOr<Placement> Place(const ClusterView& view, const GangRequest& request) {
  const Fabric& fabric = view.fabric();
  RETURN_IF_ERROR(Check(fabric, request));
  const Usable usable(view, request, Usable::When::kNow);
  const RingLimits limits = LimitsOf(fabric, request);
  const bool part_of_host = request.slots == 1 && request.gpus_per_slot > 0 && fabric.uniform_gpus() != request.gpus_per_slot;
  std::optional<HostSet> set = part_of_host ? TakePartOfHost(usable, request) : TakeNearest(usable, request, limits);
  if (!set.has_value()) {
    const Usable idle(view, request, Usable::When::kIdle);
    return Explain(view, request, usable, TakeNearest(idle, request, limits).has_value());
  }
  const std::optional<PlainRing> ring = AsPlainRing(request);
  absl::StatusOr<Placement> placement =
      ring.has_value() ? PlaceRing(usable, request, *ring, *std::move(set)) : PlaceBlocks(usable, request, limits, *std::move(set));
  RETURN_IF_ERROR(placement.status());
  for (const HostId host : placement->hosts) placement->gpus.push_back(ChooseGpus(view.status(host).free(), request.gpus_per_slot));
  placement->spares = ChooseSpares(usable, request, placement->hosts);
  placement->domains = CountDomains(fabric, placement->hosts);
  placement->gap = Gap(placement->traffic, placement->lower_bound);
  placement->reason = Reason(usable, request, *placement);
  return placement;
}

}  // namespace closeknit
