// A gang as a weighted graph of its slots: how many bytes per step each slot sends to each other one.
//
// What the searches work on; placement/evaluate.h walks ranks instead, so that the two can check each other.
#ifndef CLOSEKNIT_PLACEMENT_SLOT_GRAPH_H_
#define CLOSEKNIT_PLACEMENT_SLOT_GRAPH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster_model/fabric.h"
#include "placement/gang_request.h"
#include "placement/place.h"

namespace closeknit {

struct SlotEdge {
  int to = 0;
  double bytes = 0;  // sent by this slot to `to`, and by `to` to this slot, together: both cross the same uplink tiers
  double sent = 0;   // by this slot to `to`: what goes up
};

class SlotGraph {
 public:
  static constexpr int64_t kMaxRankEdges = 200'000'000;

  // O(ranks * dimensions), all-to-all groups O(their pairs). kInvalidArgument beyond kMaxRankEdges.
  static absl::StatusOr<SlotGraph> Build(const GangRequest& request);

  int slots() const { return static_cast<int>(edges_.size()); }
  absl::Span<const SlotEdge> edges(int slot) const { return edges_[slot]; }

  // T of a map. O(edges).
  TierBytes Traffic(const Fabric& fabric, absl::Span<const HostId> hosts) const;
  // The part of T that the edges of one slot make, were it on `host`; other slots are where `hosts` says.
  TierBytes TrafficOf(const Fabric& fabric, absl::Span<const HostId> hosts, int slot, HostId host) const;

 private:
  std::vector<std::vector<SlotEdge>> edges_;  // symmetric
};

// How a gang's traffic leaves hosts, if one dimension alone does, over all slots in order: a ring or a chain.
struct PlainRing {
  int communicators = 1;  // that run side by side from host to host
  double bytes = 1;       // of one edge, per direction that it has
  double wrap_bytes = 0;  // chain: of each closing edge
  bool chain = false;

  // T_s of a gang whose hosts are contiguous in the tree and touch that many domains of a tier.
  double Bytes(int domains) const {
    if (domains < 2) return 0;
    return communicators * (chain ? 2 * (domains - 1) * bytes + 2 * wrap_bytes : domains * bytes);
  }
};
// nullopt: several dimensions leave hosts, or all-to-all groups do.
std::optional<PlainRing> AsPlainRing(const GangRequest& request);

// Negative, 0 or positive as a is cheaper than, as costly as, dearer than b: from the top tier down. Differences within rounding are none.
int CompareTraffic(const TierBytes& a, const TierBytes& b);

}  // namespace closeknit

#endif  // CLOSEKNIT_PLACEMENT_SLOT_GRAPH_H_
