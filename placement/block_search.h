// Gangs with several dimensions across hosts: families of orders on the cheapest host sets, improved by swaps, with a valid lower bound.
#ifndef CLOSEKNIT_PLACEMENT_BLOCK_SEARCH_H_
#define CLOSEKNIT_PLACEMENT_BLOCK_SEARCH_H_

#include <vector>

#include "placement/gang_request.h"
#include "placement/place.h"
#include "placement/ring_search.h"
#include "placement/slot_graph.h"
#include "placement/usable.h"

namespace closeknit {

// How the slots of a gang form a grid: `columns` consecutive slots are one replica, `rows` replicas. One row where nothing is known.
struct SlotGrid {
  int rows = 1, columns = 1;
};
SlotGrid GridOf(const GangRequest& request);

// Orders one host set (in fabric order): hosts by slot, of the least traffic found. The families are replica-major, stage-major, and tiles
// between them; the best is improved by swapping pairs of slots while that helps, for a fixed number of tries.
// O(families * edges + tries * edges of a slot).
std::vector<HostId> OrderHosts(const Fabric& fabric, const GangRequest& request, const SlotGraph& graph, const std::vector<HostId>& hosts);

// No placement of the request on usable hosts costs less, tier by tier.
//
// Argument: at tier s a domain holds at most c_s slots, so the gang's slots fall into groups of at most c_s each. The least weight that
// leaves any a slots of the grid is bounded by isoperimetry (in the simplest form of Bollobas and Leader, "Edge-isoperimetric inequalities
// in the grid", 1991): a set that touches r rows and c columns has a <= r*c; each row that it holds in part is cut, and so is each column.
// The bound is the least sum of such borders over all ways to split the gang. O(tiers * (c_s * rows + slots * c_s)).
TierBytes LowerBound(const Usable& usable, const GangRequest& request);

}  // namespace closeknit

#endif  // CLOSEKNIT_PLACEMENT_BLOCK_SEARCH_H_
