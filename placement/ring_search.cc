#include "placement/ring_search.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "placement/ring_cost.h"
#include "placement/ring_layers.h"
#include "proto/base/check.h"

namespace closeknit {
namespace {

// Racks with equally many usable hosts that are whole-free or not: they cost the same.
struct RackClass {
  int usable = 0;
  bool whole = false;
  std::vector<DomainId> racks;
};

template <typename RingCost>
class RingSearch {
 public:
  RingSearch(const Usable& usable, const RingLimits& limits, const RingUnits<RingCost>& units, int n)
      : usable_(usable), fabric_(usable.fabric()), limits_(limits), units_(units), n_(n) {}

  // The least cost of n hosts of a domain, beyond what touching the domain itself costs. `domains`: exactly so many of its children are
  // touched; 0: however many.
  RingCost Cost(DomainId id, int domains) {
    const Domain& domain = fabric_.domain(id);
    if (usable_.Count(id) < n_ || !Multiple(domain.tier, n_)) return kNone;
    if (domain.tier == 1) return 0;
    if (domain.tier == 2 && domains == 0) return Racks(id, n_, nullptr)[n_];
    std::vector<int> counts;
    return Children(id, domains, &counts);
  }
  // Takes them; false if there are none.
  bool Take(DomainId id, int domains, std::vector<HostId>* hosts) {
    const Domain& domain = fabric_.domain(id);
    if (domain.tier == 1 || (domain.tier == 2 && domains == 0)) {
      if (Cost(id, domains) >= kNone) return false;
      TakeBelow(id, n_, hosts);
      return true;
    }
    std::vector<int> counts;
    if (usable_.Count(id) < n_ || !Multiple(domain.tier, n_) || Children(id, domains, &counts) >= kNone) return false;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] > 0) TakeBelow(domain.children[i], counts[i], hosts);
    }
    return true;
  }
  // What touching a domain costs when k of its hosts are taken.
  RingCost Own(DomainId id, int k) const {
    const Tier tier = fabric_.domain(id).tier;
    RingCost cost = units_.domain[tier] + units_.leftover[tier] * static_cast<RingCost>(usable_.Count(id) - k);
    if (usable_.WholeFree(id)) cost += units_.broken[tier];
    return cost;
  }

 private:
  // [k]: the least cost of taking k hosts; kNone where that cannot be.
  using CostOfCount = std::vector<RingCost>;
  static constexpr RingCost kNone = kInfeasible<RingCost>;

  bool Multiple(Tier tier, int k) const { return limits_.multiple_of[tier] == 0 || k % limits_.multiple_of[tier] == 0; }
  int Capacity(DomainId id) const {
    const int unit = std::max(1, limits_.multiple_of[fabric_.domain(id).tier]);
    return usable_.Count(id) / unit * unit;
  }

  // Costs of k = 0..most hosts of a domain, with what touching it costs.
  CostOfCount Solve(DomainId id, int most) {
    const Domain& domain = fabric_.domain(id);
    most = std::min(most, usable_.Count(id));
    CostOfCount costs(most + 1, 0);
    if (domain.tier == 2) costs = Racks(id, most, nullptr);
    if (domain.tier > 2) costs = Combine(id, most, nullptr);
    for (int k = 1; k <= most; ++k) {
      if (!Multiple(domain.tier, k)) costs[k] = kNone;
      if (costs[k] < kNone) costs[k] += Own(id, k);
    }
    return costs;
  }

  std::vector<RackClass> Classes(DomainId id) const {
    std::vector<RackClass> classes;
    for (const DomainId rack : fabric_.domain(id).children) {
      const int usable = usable_.Count(rack);
      if (Capacity(rack) == 0) continue;
      const bool whole = usable_.WholeFree(rack);
      const auto same =
          std::find_if(classes.begin(), classes.end(), [&](const RackClass& c) { return c.usable == usable && c.whole == whole; });
      if (same == classes.end()) {
        classes.push_back({usable, whole, {rack}});
      } else {
        same->racks.push_back(rack);
      }
    }
    return classes;
  }

  // The cost of racks depends on which are touched alone, not on how many hosts each gives. So: which racks have room for k at the least
  // cost? A knapsack over classes of racks, each class in bundles of 1, 2, 4, ... `counts`: [rack index] hosts taken, for k = most.
  CostOfCount Racks(DomainId id, int most, std::vector<int>* counts) {
    struct Bundle {
      const RackClass* of;
      int racks;
    };
    const std::vector<RackClass> classes = Classes(id);
    std::vector<Bundle> bundles;
    int largest = 0;
    for (const RackClass& of : classes) {
      int left = static_cast<int>(of.racks.size());
      for (int size = 1; left > 0; size *= 2) {
        bundles.push_back({&of, std::min(size, left)});
        left -= std::min(size, left);
      }
      largest = std::max(largest, Room(of));
    }
    // Sets with more room than most + largest have a rack too many.
    const int limit = std::min(most + largest, std::accumulate(classes.begin(), classes.end(), 0, [&](int sum, const RackClass& of) {
                                 return sum + Room(of) * static_cast<int>(of.racks.size());
                               }));
    CostOfCount room(limit + 1, kNone);  // [v]: the least cost of racks with room for exactly v
    room[0] = 0;
    std::vector<std::vector<bool>> taken;  // [bundle][v]
    for (const Bundle& bundle : bundles) {
      const int v = Room(*bundle.of) * bundle.racks;
      const RingCost each =
          units_.domain[1] + (bundle.of->whole ? units_.broken[1] : 0) + units_.leftover[1] * static_cast<RingCost>(bundle.of->usable);
      if (counts != nullptr) taken.emplace_back(limit + 1, false);
      for (int to = limit; to >= v; --to) {
        const RingCost cost = room[to - v] + each * static_cast<RingCost>(bundle.racks);
        if (room[to - v] >= kNone || cost >= room[to]) continue;
        room[to] = cost;
        if (counts != nullptr) taken.back()[to] = true;
      }
    }
    CostOfCount costs(most + 1, kNone);
    std::vector<int> best(most + 1, -1);
    RingCost least = kNone;
    int at = -1;
    for (int v = limit; v >= 0; --v) {
      if (room[v] < kNone && room[v] <= least) {
        least = room[v];
        at = v;
      }
      if (v > most || least >= kNone || !Multiple(1, v)) continue;
      costs[v] = least - units_.leftover[1] * static_cast<RingCost>(v);
      best[v] = at;
    }
    costs[0] = 0;
    if (counts == nullptr || best[most] < 0) return costs;
    std::vector<std::pair<const RackClass*, int>> chosen;
    int v = best[most];
    for (size_t i = bundles.size(); i-- > 0;) {
      if (!taken[i][v]) continue;
      chosen.emplace_back(bundles[i].of, bundles[i].racks);
      v -= Room(*bundles[i].of) * bundles[i].racks;
    }
    Fill(id, chosen, most, counts);
    return costs;
  }
  int Room(const RackClass& of) const { return Capacity(of.racks[0]); }

  // Hosts per rack: the first racks of each class, all full but the last, which gets the rest.
  void Fill(DomainId id, const std::vector<std::pair<const RackClass*, int>>& chosen, int k, std::vector<int>* counts) const {
    const std::vector<DomainId>& children = fabric_.domain(id).children;
    counts->assign(children.size(), 0);
    std::vector<DomainId> racks;
    std::vector<std::pair<const RackClass*, int>> next;  // racks of each class used so far
    for (const auto& [of, many] : chosen) {
      auto used = std::find_if(next.begin(), next.end(), [of = of](const auto& entry) { return entry.first == of; });
      if (used == next.end()) used = next.insert(next.end(), {of, 0});
      for (int i = 0; i < many; ++i) racks.push_back(of->racks[used->second++]);
    }
    std::sort(racks.begin(), racks.end());
    const int unit = std::max(1, limits_.multiple_of[1]);
    int left = k;
    for (size_t i = 0; i < racks.size(); ++i) {
      // Every rack gives something, or it would not have been taken.
      const int later = static_cast<int>(racks.size() - i - 1) * unit;
      const int take = std::min(Capacity(racks[i]), left - later);
      CHECK(take > 0) << "a rack without hosts in a set of racks of least cost";
      const auto index = std::find(children.begin(), children.end(), racks[i]) - children.begin();
      (*counts)[index] = take;
      left -= take;
    }
    CHECK(left == 0) << left << " hosts have no rack";
  }

  // Children of any number, k = 0..most, added one after the other. `counts`: hosts per child for k = most.
  CostOfCount Combine(DomainId id, int most, std::vector<int>* counts) {
    const std::vector<DomainId>& children = fabric_.domain(id).children;
    CostOfCount costs = {0};
    std::vector<std::vector<int>> choices;  // [child][k]
    for (const DomainId child : children) {
      const CostOfCount own = Solve(child, most);
      const int reach = std::min<int>(most, static_cast<int>(costs.size() + own.size()) - 2);
      CostOfCount next(reach + 1, kNone);
      std::vector<int> choice(counts != nullptr ? reach + 1 : 0, 0);
      for (int before = 0; before < static_cast<int>(costs.size()); ++before) {
        if (costs[before] >= kNone) continue;
        for (int k = 0; k < static_cast<int>(own.size()) && before + k <= reach; ++k) {
          if (own[k] >= kNone || costs[before] + own[k] >= next[before + k]) continue;
          next[before + k] = costs[before] + own[k];
          if (counts != nullptr) choice[before + k] = k;
        }
      }
      costs = std::move(next);
      if (counts != nullptr) choices.push_back(std::move(choice));
    }
    costs.resize(most + 1, kNone);
    if (counts == nullptr) return costs;
    counts->assign(children.size(), 0);
    if (costs[most] >= kNone) return costs;
    int k = most;
    for (size_t i = children.size(); i-- > 0;) {
      (*counts)[i] = choices[i][k];
      k -= choices[i][k];
    }
    return costs;
  }

  // n hosts of a domain's children, of which exactly `domains` (0: the fewest that can hold n; more only where they must) are touched.
  RingCost Children(DomainId id, int domains, std::vector<int>* counts) {
    const std::vector<DomainId>& children = fabric_.domain(id).children;
    std::vector<int> rooms;
    for (const DomainId child : children) rooms.push_back(Capacity(child));
    std::sort(rooms.rbegin(), rooms.rend());
    int fewest = 0;
    for (int sum = 0; sum < n_; ++fewest) {
      if (fewest == static_cast<int>(rooms.size()) || rooms[fewest] == 0) return kNone;
      sum += rooms[fewest];
    }
    if (domains != 0) return domains < fewest ? kNone : Layers(id, domains, counts);
    const RingCost cost = Layers(id, fewest, counts);
    if (cost < kNone) return cost;
    return Combine(id, n_, counts)[n_];  // multiples of lower tiers leave too little in so few
  }

  // Exactly c children are touched.
  RingCost Layers(DomainId id, int c, std::vector<int>* counts) {
    const std::vector<DomainId>& children = fabric_.domain(id).children;
    std::vector<int> rooms;
    std::vector<size_t> indices;  // of children with room
    for (size_t i = 0; i < children.size(); ++i) {
      const int room = std::min(Capacity(children[i]), n_);
      if (room == 0) continue;
      rooms.push_back(room);
      indices.push_back(i);
    }
    std::vector<int> taken;
    RingLayers<RingCost> layers(rooms, c, n_);
    const RingCost cost = layers.Solve([&](size_t i) { return Solve(children[indices[i]], rooms[i]); }, &taken);
    counts->assign(children.size(), 0);
    for (size_t i = 0; i < taken.size(); ++i) (*counts)[indices[i]] = taken[i];
    return cost;
  }

  void TakeBelow(DomainId id, int k, std::vector<HostId>* hosts) {
    const Domain& domain = fabric_.domain(id);
    if (domain.tier == 1) return TakeOfRack(domain, k, hosts);
    std::vector<int> counts;
    if (domain.tier == 2) {
      Racks(id, k, &counts);
    } else {
      Combine(id, k, &counts);
    }
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] > 0) TakeBelow(domain.children[i], counts[i], hosts);
    }
  }

  // Partly used hosts first, so that whole ones stay whole; then in fabric order.
  void TakeOfRack(const Domain& rack, int k, std::vector<HostId>* hosts) const {
    std::vector<HostId> usable;
    for (HostId host = rack.first_host; host < rack.end_host; ++host.value) {
      if (usable_.Is(host)) usable.push_back(host);
    }
    if (static_cast<int>(usable.size()) > k) {
      const ClusterView& view = usable_.view();
      std::stable_sort(usable.begin(), usable.end(),
                       [&](HostId a, HostId b) { return view.status(a).free().size() < view.status(b).free().size(); });
      usable.resize(k);
      std::sort(usable.begin(), usable.end());
    }
    hosts->insert(hosts->end(), usable.begin(), usable.end());
  }

  const Usable& usable_;
  const Fabric& fabric_;
  const RingLimits& limits_;
  const RingUnits<RingCost>& units_;
  const int n_;
};

int DomainsAt(const Fabric& fabric, const std::vector<HostId>& hosts, Tier tier) {
  int domains = 0;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (i == 0 || fabric.DomainOf(hosts[i], tier) != fabric.DomainOf(hosts[i - 1], tier)) ++domains;
  }
  return domains;
}

// The highest tier below the scope's at which the set touches too many domains; 0: none.
Tier TooMany(const Fabric& fabric, const RingLimits& limits, const std::vector<HostId>& hosts) {
  for (Tier t = fabric.domain(limits.scope).tier; t >= 1; --t) {
    if (limits.max_domains[t] != 0 && DomainsAt(fabric, hosts, t) > limits.max_domains[t]) return t;
  }
  return 0;
}

template <typename RingCost>
std::optional<HostSet> Take(const Usable& usable, const RingLimits& limits, int n) {
  const Fabric& fabric = usable.fabric();
  const Domain& scope = fabric.domain(limits.scope);
  HostSet set;
  const RingUnits<RingCost> units(fabric, 0);
  if (!RingSearch<RingCost>(usable, limits, units, n).Take(limits.scope, 0, &set.hosts)) return std::nullopt;
  const Tier tight = TooMany(fabric, limits, set.hosts);
  if (tight == 0) return set;
  if (tight >= scope.tier - 1) return std::nullopt;  // that number is the least there is
  // More children, until they hold the gang in few enough domains of the tier that was too many: the least number of children comes first
  // in the cost, then (exactly so where no tier lies between) the tier's own.
  const RingUnits<RingCost> tight_units(fabric, tight);
  set.exact = tight >= scope.tier - 2;
  for (int children = 1; scope.tier > 1 && children <= static_cast<int>(scope.children.size()); ++children) {
    set.hosts.clear();
    if (!RingSearch<RingCost>(usable, limits, tight_units, n).Take(limits.scope, children, &set.hosts)) continue;
    if (TooMany(fabric, limits, set.hosts) == 0) return set;
  }
  return std::nullopt;
}

template <typename RingCost>
std::optional<HostSet> TakeInOne(const Usable& usable, RingLimits limits, Tier tier, int n, SpareRoom spare) {
  const Fabric& fabric = usable.fabric();
  const RingUnits<RingCost> units(fabric, 0);
  RingSearch<RingCost> search(usable, limits, units, n);
  std::vector<DomainId> fitting;
  for (const DomainId id : fabric.DomainsAt(tier)) {
    if (usable.Count(id) < n || usable.Count(fabric.DomainOf(fabric.domain(id).first_host, spare.tier)) < n + spare.hosts) continue;
    fitting.push_back(id);
  }
  std::vector<std::pair<RingCost, DomainId>> candidates;
  // What is touched above: the same number of domains whichever is chosen, but not the same ones. Children of one parent follow each other.
  std::optional<DomainId> parent;
  RingCost above = 0;
  for (const DomainId id : fitting) {
    const RingCost cost = fitting.size() == 1 ? 0 : search.Cost(id, 0);  // one needs no comparison
    if (cost >= kInfeasible<RingCost>) continue;
    if (id != fabric.root() && parent != fabric.domain(id).parent) {
      parent = fabric.domain(id).parent;
      above = 0;
      for (DomainId at = *parent;; at = fabric.domain(at).parent) {
        above += search.Own(at, n);
        if (at == fabric.root()) break;
      }
    }
    candidates.emplace_back(cost + search.Own(id, n) + above, id);
  }
  // The cheapest first; others only where limits on the number of domains rule it out.
  const auto dearer = [](const auto& a, const auto& b) { return a > b; };
  std::make_heap(candidates.begin(), candidates.end(), dearer);
  while (!candidates.empty()) {
    limits.scope = candidates.front().second;
    if (std::optional<HostSet> set = Take<RingCost>(usable, limits, n); set.has_value()) return set;
    std::pop_heap(candidates.begin(), candidates.end(), dearer);
    candidates.pop_back();
  }
  return std::nullopt;
}

// Whether all components of costs fit 64 bits, whichever tier is first.
bool Narrow(const Fabric& fabric) { return RingUnits<uint64_t>(fabric, 0).complete; }

}  // namespace

std::optional<HostSet> TakeHosts(const Usable& usable, const RingLimits& limits, int n) {
  return Narrow(usable.fabric()) ? Take<uint64_t>(usable, limits, n) : Take<WideCost>(usable, limits, n);
}

std::optional<HostSet> TakeHostsInOne(const Usable& usable, RingLimits limits, Tier tier, int n, SpareRoom spare) {
  return Narrow(usable.fabric()) ? TakeInOne<uint64_t>(usable, limits, tier, n, spare)
                                 : TakeInOne<WideCost>(usable, limits, tier, n, spare);
}

}  // namespace closeknit
