// Chooses hosts for a gang: which host takes which ranks.
//
// Pure: no clock, no IO, no randomness; equal arguments give equal answers on every machine.
// The model and its cost are defined in docs/placement.md.
#ifndef CLOSEKNIT_PLACEMENT_PLACE_H_
#define CLOSEKNIT_PLACEMENT_PLACE_H_

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster_model/cluster_view.h"
#include "placement/gang_request.h"

namespace closeknit {

// Bytes per training step over the uplinks of each tier: [0] host NICs, [1] rack, ...; 0 from the root up.
using TierBytes = std::array<double, kMaxTiers + 1>;

// Hosts for every slot of a gang, in rank order, with what they cost.
struct Placement {
  std::vector<HostId> hosts;   // size: request.slots; hosts[i] runs ranks [i*g, (i+1)*g)
  std::vector<GpuSet> gpus;    // same size: GPUs on each, gpus_per_slot of them
  std::vector<HostId> spares;  // size: request.spares; nearest first
  TierBytes traffic{};
  TierBytes lower_bound{};                   // no placement of this request on this view can cost less
  std::array<int, kMaxTiers + 1> domains{};  // domains used at each tier
  double gap = 0;                            // (traffic - bound) / bound at the highest tier where they differ
  std::string reason;                        // one sentence for people
  bool proven_optimal() const { return traffic == lower_bound; }

  // The busiest uplink, for fabrics that state capacities.
  struct Busiest {
    DomainId domain;
    double bytes = 0, seconds = 0;  // per step
  };
  std::optional<Busiest> busiest;
};

// Why a request does not fit now, in the payload of a kResourceExhausted or kFailedPrecondition status.
struct Unplaceable {
  std::string why;          // the binding constraint with its numbers
  std::string nearest;      // the nearest change that would fit, e.g. "12 fewer hosts"
  int fitting_slots = 0;    // hosts that would fit; 0: not by size
  Tier fitting_tier = 0;    // tier that would have to be allowed; 0: none
  int fitting_domains = 0;  // domains of that tier
};
std::optional<Unplaceable> GetUnplaceable(const absl::Status& status);

// Returns the placement of least cost, or
//   kInvalidArgument    the request contradicts itself (the message names the field);
//   kResourceExhausted  it does not fit now; the payload `Unplaceable` holds the binding constraint with its numbers
//                       and the nearest change that would fit;
//   kFailedPrecondition it can never fit this fabric, were everything free (payload as well).
absl::StatusOr<Placement> Place(const ClusterView& view, const GangRequest& request);

// Substitutes for the failed slots of a running gang: every other slot stays. `hosts` is the present map; `failed` are slot numbers. The
// failed hosts themselves are never chosen, nor hosts that the gang already uses; the gang's own allocations count as held. Cheapest in the
// gang's cost; same errors as Place.
absl::StatusOr<Placement> Replace(const ClusterView& view, const GangRequest& request, absl::Span<const HostId> hosts,
                                  absl::Span<const int> failed);

}  // namespace closeknit

#endif  // CLOSEKNIT_PLACEMENT_PLACE_H_
