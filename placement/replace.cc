// Substitutes for failed slots of a running gang.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "placement/explain.h"
#include "placement/gpus.h"
#include "placement/measure.h"
#include "placement/place.h"
#include "placement/slot_graph.h"
#include "placement/usable.h"
#include "proto/base/errors.h"
#include "proto/base/host_list.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

absl::Status Check(const Fabric& fabric, const GangRequest& request, absl::Span<const HostId> hosts, absl::Span<const int> failed) {
  if (hosts.size() != static_cast<size_t>(request.slots)) {
    return absl::InvalidArgumentError(absl::StrCat("the map has ", hosts.size(), " hosts, the gang ", request.slots, " slots"));
  }
  for (const int slot : failed) {
    if (slot < 0 || slot >= request.slots) return absl::InvalidArgumentError(absl::StrCat("no slot ", slot, "; 0..", request.slots - 1));
  }
  for (const HostId host : hosts) {
    if (host.value >= fabric.hosts().size()) return absl::InvalidArgumentError(absl::StrCat("no host number ", host.value));
  }
  return absl::OkStatus();
}

class Substitution {
 public:
  Substitution(const ClusterView& view, const GangRequest& request, const SlotGraph& graph, absl::Span<const HostId> hosts,
               absl::Span<const int> failed)
      : fabric_(view.fabric()),
        request_(request),
        graph_(graph),
        usable_(view, request, Usable::When::kNow),
        hosts_(hosts.begin(), hosts.end()) {
    for (const HostId host : hosts_) barred_.insert(host);
    vacant_.resize(hosts_.size(), false);
    for (const int slot : failed) vacant_[slot] = true;
    for (size_t i = 0; i < hosts_.size(); ++i) {
      if (!vacant_[i]) Hold(hosts_[i]);
    }
  }

  const Usable& usable() const { return usable_; }

  // The cheapest host for a vacant slot, given those that are filled. Racks are alike to the gang: of each, the first that fits best is
  // tried. O(racks * edges of a slot * tiers).
  bool Fill(int slot) {
    std::optional<HostId> best;
    TierBytes least{};
    std::pair<int, int> least_tie;  // usable hosts left whole in its rack, fewest first; whole-free racks broken
    for (const DomainId rack : fabric_.DomainsAt(1)) {
      if (usable_.Count(rack) == 0 || !Allowed(rack)) continue;
      const std::optional<HostId> host = FirstOf(fabric_.domain(rack));
      if (!host.has_value()) continue;
      const TierBytes cost = CostOf(slot, *host);
      const std::pair<int, int> tie = {usable_.WholeFree(rack) ? 1 : 0, usable_.Count(rack)};
      const int order = best.has_value() ? CompareTraffic(cost, least) : -1;
      if (order > 0 || (order == 0 && tie >= least_tie)) continue;
      best = host;
      least = cost;
      least_tie = tie;
    }
    if (!best.has_value()) return false;
    hosts_[slot] = *best;
    vacant_[slot] = false;
    barred_.insert(*best);
    Hold(*best);
    return true;
  }

  // Limits on numbers per domain, which single choices cannot see.
  bool KeepsMultiples() const {
    for (const auto& [tier, unit] : request_.multiple_of) {
      absl::flat_hash_map<DomainId, int> counts;
      for (const HostId host : hosts_) ++counts[fabric_.DomainOf(host, tier)];
      for (const auto& [domain, count] : counts) {
        if (count % unit != 0) return false;
      }
    }
    return true;
  }

  std::vector<HostId> TakeHosts() { return std::move(hosts_); }

 private:
  void Hold(HostId host) {
    for (Tier t = 1; t <= fabric_.top(); ++t) held_[t].insert(fabric_.DomainOf(host, t));
  }

  bool Allowed(DomainId rack) const {
    const HostId host = fabric_.domain(rack).first_host;
    if (request_.required_tier.has_value()) {
      const auto& held = held_[*request_.required_tier];
      if (!held.empty() && !held.contains(fabric_.DomainOf(host, *request_.required_tier))) return false;
    }
    for (const auto& [tier, most] : request_.max_domains) {
      const auto& held = held_[tier];
      if (!held.contains(fabric_.DomainOf(host, tier)) && static_cast<int>(held.size()) >= most) return false;
    }
    return true;
  }

  std::optional<HostId> FirstOf(const Domain& rack) const {
    std::optional<HostId> best;
    int fewest = 0;
    for (HostId host = rack.first_host; host < rack.end_host; ++host.value) {
      if (!usable_.Is(host) || barred_.contains(host)) continue;
      const int free = usable_.view().status(host).free().size();
      if (best.has_value() && free >= fewest) continue;
      best = host;
      fewest = free;
    }
    return best;
  }

  // Bytes by tier between the slot, were it on `host`, and its filled neighbours.
  TierBytes CostOf(int slot, HostId host) const {
    TierBytes met{};
    for (const SlotEdge& edge : graph_.edges(slot)) {
      if (!vacant_[edge.to]) met[fabric_.CommonTier(host, hosts_[edge.to])] += edge.bytes;
    }
    TierBytes cost{};
    for (Tier s = fabric_.top() - 1; s >= 0; --s) cost[s] = cost[s + 1] + met[s + 1];
    return cost;
  }

  const Fabric& fabric_;
  const GangRequest& request_;
  const SlotGraph& graph_;
  const Usable usable_;
  std::vector<HostId> hosts_;
  std::vector<bool> vacant_;
  absl::flat_hash_set<HostId> barred_;  // of the gang, now or before
  std::array<absl::flat_hash_set<DomainId>, kMaxTiers + 1> held_;
};

absl::Status NoSubstitute(const ClusterView& view, const GangRequest& request, const Substitution& substitution,
                          absl::Span<const HostId> hosts, absl::Span<const int> failed) {
  const Fabric& fabric = view.fabric();
  std::vector<std::string> names;
  for (const int slot : failed) names.push_back(fabric.host(hosts[slot]).name);
  Unplaceable answer;
  const int usable = substitution.usable().Count(fabric.root());
  answer.why = absl::StrCat("no substitute for ", FoldHostSet(names), ": ", usable, usable == 1 ? " host is" : " hosts are", " free");
  if (request.required_tier.has_value()) {
    absl::StrAppend(&answer.why, ", none in the gang's ", fabric.TierName(*request.required_tier));
  } else if (usable > 0) {
    absl::StrAppend(&answer.why, ", none within the gang's limits");
  }
  return UnplaceableError(absl::StatusCode::kResourceExhausted, answer);
}

}  // namespace

absl::StatusOr<Placement> Replace(const ClusterView& view, const GangRequest& request, absl::Span<const HostId> hosts,
                                  absl::Span<const int> failed) {
  const Fabric& fabric = view.fabric();
  RETURN_IF_ERROR(Check(fabric, request, hosts, failed));
  ASSIGN_OR_RETURN(const SlotGraph graph, SlotGraph::Build(request));
  Substitution substitution(view, request, graph, hosts, failed);
  std::vector<int> slots(failed.begin(), failed.end());
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  for (const int slot : slots) {
    if (!substitution.Fill(slot)) return NoSubstitute(view, request, substitution, hosts, failed);
  }
  if (!substitution.KeepsMultiples()) return NoSubstitute(view, request, substitution, hosts, failed);
  Placement placement;
  placement.hosts = substitution.TakeHosts();
  absl::flat_hash_set<int> replaced(slots.begin(), slots.end());
  for (int slot = 0; slot < request.slots; ++slot) {
    // Survivors keep what they hold; the caller knows it.
    placement.gpus.push_back(replaced.contains(slot) ? ChooseGpus(view.status(placement.hosts[slot]).free(), request.gpus_per_slot)
                                                     : GpuSet());
  }
  placement.traffic = graph.Traffic(fabric, placement.hosts);
  placement.domains = CountDomains(fabric, placement.hosts);
  // With one slot to fill every host was looked at; with several they were filled one after the other, and no bound is known but nothing.
  if (slots.size() == 1) placement.lower_bound = placement.traffic;
  placement.gap = Gap(placement.traffic, placement.lower_bound);
  std::vector<std::string> names;
  for (const int slot : slots) names.push_back(fabric.host(placement.hosts[slot]).name);
  placement.reason = absl::StrCat("substitutes: ", FoldHostList(names));
  return placement;
}

}  // namespace closeknit
