// Which hosts a request may use, now or on an idle fabric, with counts per domain.
#ifndef CLOSEKNIT_PLACEMENT_USABLE_H_
#define CLOSEKNIT_PLACEMENT_USABLE_H_

#include <string>
#include <vector>

#include "cluster_model/cluster_view.h"
#include "placement/gang_request.h"

namespace closeknit {

// Why a host cannot take a slot, the first that holds in this order.
enum class Hindrance {
  kNone,
  kTooFewGpus,  // by its description
  kPartition,
  kFeatures,
  kNodelist,
  kExcluded,
  kDown,
  kDrained,
  kReserved,
  kResting,
  kBusy,  // too few GPUs are free, or the host is held whole
  kMissingGpus,
  kRailDown,
};
Hindrance HindranceOf(const ClusterView& view, const GangRequest& request, HostId host);

class Usable {
 public:
  enum class When { kNow, kIdle };  // kIdle: were nothing allocated and everything healthy

  // O(1) where the request takes whole hosts of a uniform fabric without filters, else O(hosts).
  Usable(const ClusterView& view, const GangRequest& request, When when);

  bool Is(HostId host) const;
  // Usable hosts of a domain. O(1).
  int Count(DomainId domain) const;
  // All hosts of the domain are usable and nothing is allocated on them. O(1).
  bool WholeFree(DomainId domain) const;
  const ClusterView& view() const { return view_; }
  const Fabric& fabric() const { return view_.fabric(); }

 private:
  bool Compute(HostId host) const;

  const ClusterView& view_;
  const GangRequest& request_;
  const When when_;
  bool by_counts_ = false;   // the view's own counts are the answer
  std::vector<int> before_;  // else [h]: usable hosts with ids below h
};

}  // namespace closeknit

#endif  // CLOSEKNIT_PLACEMENT_USABLE_H_
