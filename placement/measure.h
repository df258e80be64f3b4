// Figures of a placement: domains, gap, busiest uplink, and the sentence that says why it is so.
#ifndef CLOSEKNIT_PLACEMENT_MEASURE_H_
#define CLOSEKNIT_PLACEMENT_MEASURE_H_

#include <array>
#include <string>

#include "absl/types/span.h"
#include "placement/place.h"
#include "placement/slot_graph.h"
#include "placement/usable.h"

namespace closeknit {

// Domains used at each tier, [0]: hosts. In any order of hosts. O(hosts * tiers).
std::array<int, kMaxTiers + 1> CountDomains(const Fabric& fabric, absl::Span<const HostId> hosts);

// No n usable hosts lie in fewer domains of the tier. O(domains log domains).
int FewestDomains(const Usable& usable, Tier tier, int n);

// (traffic - bound) / bound at the highest tier where they differ; 0 where they are equal.
double Gap(const TierBytes& traffic, const TierBytes& bound);

// The uplink (or host's NICs, as its rack) with the longest time per step. The fabric states capacities. O(edges * tiers).
Placement::Busiest BusiestUplink(const Fabric& fabric, const SlotGraph& graph, absl::Span<const HostId> hosts);

std::string Reason(const Usable& usable, const GangRequest& request, const Placement& placement);

}  // namespace closeknit

#endif  // CLOSEKNIT_PLACEMENT_MEASURE_H_
