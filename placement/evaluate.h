// The exact cost of a given map, by code that shares nothing with the search but the fabric and the request.
#ifndef CLOSEKNIT_PLACEMENT_EVALUATE_H_
#define CLOSEKNIT_PLACEMENT_EVALUATE_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster_model/fabric.h"
#include "placement/gang_request.h"
#include "placement/place.h"

namespace closeknit {

// Walks every directed edge of every communicator: O(edges * tiers). kInvalidArgument: hosts.size() is not request.slots, a host twice,
// degrees that do not multiply to the ranks.
absl::StatusOr<TierBytes> EvaluateTraffic(const Fabric& fabric, const GangRequest& request, absl::Span<const HostId> hosts);

}  // namespace closeknit

#endif  // CLOSEKNIT_PLACEMENT_EVALUATE_H_
