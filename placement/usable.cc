#include "placement/usable.h"

#include <algorithm>

namespace closeknit {
namespace {

bool InPartition(const Host& host, const std::string& partition) {
  if (host.partitions.empty()) return partition == "default" || partition.empty();
  return std::binary_search(host.partitions.begin(), host.partitions.end(), partition);
}

bool Has(Unavailable set, Unavailable reason) { return (set & reason) != Unavailable::kNone; }

// What the description and the request alone decide.
Hindrance StaticHindrance(const Fabric& fabric, const GangRequest& request, HostId id) {
  const Host& host = fabric.host(id);
  if (host.gpus < request.gpus_per_slot) return Hindrance::kTooFewGpus;
  if (!InPartition(host, request.partition)) return Hindrance::kPartition;
  if (!std::includes(host.features.begin(), host.features.end(), request.features.begin(), request.features.end())) {
    return Hindrance::kFeatures;
  }
  if (request.nodelist.has_value() && !std::binary_search(request.nodelist->begin(), request.nodelist->end(), id)) {
    return Hindrance::kNodelist;
  }
  if (std::binary_search(request.exclude.begin(), request.exclude.end(), id)) return Hindrance::kExcluded;
  return Hindrance::kNone;
}

}  // namespace

Hindrance HindranceOf(const ClusterView& view, const GangRequest& request, HostId host) {
  if (const Hindrance fixed = StaticHindrance(view.fabric(), request, host); fixed != Hindrance::kNone) return fixed;
  const HostStatus& status = view.status(host);
  if (Has(status.unavailable, Unavailable::kDown)) return Hindrance::kDown;
  if (Has(status.unavailable, Unavailable::kDrained)) return Hindrance::kDrained;
  if (Has(status.unavailable, Unavailable::kReserved)) return Hindrance::kReserved;
  if (Has(status.unavailable, Unavailable::kResting)) return Hindrance::kResting;
  if (status.exclusive) return Hindrance::kBusy;
  if (request.gpus_per_slot == 0) return Hindrance::kNone;
  if (status.present.size() < request.gpus_per_slot) return Hindrance::kMissingGpus;
  if (status.free().size() < request.gpus_per_slot) return Hindrance::kBusy;
  if (status.rails_down > 0 && !request.allow_degraded) return Hindrance::kRailDown;
  return Hindrance::kNone;
}

Usable::Usable(const ClusterView& view, const GangRequest& request, When when) : view_(view), request_(request), when_(when) {
  const Fabric& fabric = view.fabric();
  by_counts_ = when == When::kNow && request.gpus_per_slot > 0 && fabric.uniform_gpus() == request.gpus_per_slot &&
               !fabric.has_partitions() && request.partition == "default" && request.features.empty() && request.exclude.empty() &&
               !request.nodelist.has_value();
  if (by_counts_) return;
  before_.resize(fabric.hosts().size() + 1);
  for (uint32_t h = 0; h < fabric.hosts().size(); ++h) before_[h + 1] = before_[h] + (Compute(HostId{h}) ? 1 : 0);
}

bool Usable::Compute(HostId host) const {
  if (when_ == When::kIdle) return StaticHindrance(fabric(), request_, host) == Hindrance::kNone;
  return HindranceOf(view_, request_, host) == Hindrance::kNone;
}

bool Usable::Is(HostId host) const {
  if (by_counts_) return view_.WholeFree(host) && (request_.allow_degraded || view_.status(host).rails_down == 0);
  return before_[host.value + 1] > before_[host.value];
}

int Usable::Count(DomainId domain) const {
  if (by_counts_) {
    const DomainCounts& counts = view_.counts(domain);
    return counts.whole_free + (request_.allow_degraded ? counts.whole_free_degraded : 0);
  }
  const Domain& d = fabric().domain(domain);
  return before_[d.end_host.value] - before_[d.first_host.value];
}

bool Usable::WholeFree(DomainId domain) const {
  const Domain& d = fabric().domain(domain);
  if (Count(domain) != d.host_count()) return false;
  if (when_ == When::kIdle) return true;
  const DomainCounts& counts = view_.counts(domain);
  return counts.whole_free + counts.whole_free_degraded == d.host_count();
}

}  // namespace closeknit
