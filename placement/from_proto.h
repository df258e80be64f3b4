// Between the public contract's messages and placement's own types.
#ifndef CLOSEKNIT_PLACEMENT_FROM_PROTO_H_
#define CLOSEKNIT_PLACEMENT_FROM_PROTO_H_

#include "absl/status/statusor.h"
#include "closeknit/v1/placement.pb.h"
#include "closeknit/v1/types.pb.h"
#include "cluster_model/fabric.h"
#include "placement/gang_request.h"
#include "placement/place.h"

namespace closeknit {

// Errors (kInvalidArgument, proto/base/errors.h) name the field: unknown tier (with the names that exist), unknown host, degrees that do
// not multiply to the ranks, pp wrap on another dimension, negative bytes, zero nodes, more ranks than 2^30, ...
absl::StatusOr<GangRequest> ToGangRequest(const v1::JobSpec& spec, const Fabric& fabric);
absl::StatusOr<GangRequest> ToGangRequest(const v1::PlanRequest& plan, const Fabric& fabric);

// Placement as a message: hosts by name, tiers by name.
v1::Placement ToProto(const Placement& placement, const Fabric& fabric);
v1::PlanResponse ToPlanResponse(const absl::StatusOr<Placement>& placement, const Fabric& fabric);

}  // namespace closeknit

#endif  // CLOSEKNIT_PLACEMENT_FROM_PROTO_H_
