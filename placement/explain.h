// Why a request does not fit, with numbers, and what would.
#ifndef CLOSEKNIT_PLACEMENT_EXPLAIN_H_
#define CLOSEKNIT_PLACEMENT_EXPLAIN_H_

#include "absl/status/status.h"
#include "placement/place.h"
#include "placement/usable.h"

namespace closeknit {

// kResourceExhausted, or kFailedPrecondition where it would not fit an idle fabric either, with the payload that GetUnplaceable reads.
// `fits_idle`: whether it would. O(hosts).
absl::Status Explain(const ClusterView& view, const GangRequest& request, const Usable& now, bool fits_idle);

absl::Status UnplaceableError(absl::StatusCode code, const Unplaceable& unplaceable);

}  // namespace closeknit

#endif  // CLOSEKNIT_PLACEMENT_EXPLAIN_H_
