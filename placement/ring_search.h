// The cheapest set of hosts for a gang whose ranks are one ring (or chain): an exact search on the fabric tree.
//
// A ring that visits its hosts in tree order crosses the uplinks of each domain it touches once, and no order crosses fewer. So the traffic
// of a host set is, per tier, the number of domains touched, and the search is a knapsack on the tree: per domain, the cheapest way to take
// k hosts. Costs are vectors (domains touched from the top tier down, whole-free domains broken from the top down, free hosts left over
// from tier 1 up), compared lexicographically and packed into one integer. docs/placement.md has the argument in full.
#ifndef CLOSEKNIT_PLACEMENT_RING_SEARCH_H_
#define CLOSEKNIT_PLACEMENT_RING_SEARCH_H_

#include <array>
#include <optional>
#include <vector>

#include "cluster_model/fabric.h"
#include "placement/usable.h"

namespace closeknit {

// What the search may not do, per tier; 0: no limit. Only hosts of `scope` are taken.
struct RingLimits {
  DomainId scope;
  std::array<int, kMaxTiers + 1> multiple_of{};  // each domain of that tier gives a multiple of so many hosts
  std::array<int, kMaxTiers + 1> max_domains{};  // at most so many domains of that tier
};

// How many domains a set touches at each tier below the scope's, and whether that is proven to be the least from the top tier down.
struct HostSet {
  std::vector<HostId> hosts;  // in fabric order, n of them
  bool exact = true;          // false: max_domains below the tier under the scope's top was met by a search that is not exhaustive
};

// Takes n >= 1 hosts, or nullopt where no n hosts of the scope keep the limits.
//
// Time: for scopes of two tiers O(classes of racks * log(racks) * hosts of the scope); for three, with D domains of at most f free hosts
// below it, of which the least possible number d is taken, O(D * d * s^2) with the slack s = (free hosts of the d freest) - n <= f.
std::optional<HostSet> TakeHosts(const Usable& usable, const RingLimits& limits, int n);

// So many hosts more than the gang's are usable in its domain of that tier, for spares.
struct SpareRoom {
  Tier tier = 1;
  int hosts = 0;
};
// The same in the domain of `tier` where that is cheapest, wherever in the fabric. nullopt: in none.
std::optional<HostSet> TakeHostsInOne(const Usable& usable, RingLimits limits, Tier tier, int n, SpareRoom spare);

}  // namespace closeknit

#endif  // CLOSEKNIT_PLACEMENT_RING_SEARCH_H_
