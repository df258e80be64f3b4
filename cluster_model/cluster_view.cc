#include "cluster_model/cluster_view.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/errors.h"
#include "proto/base/host_list.h"

namespace closeknit {
namespace {

// Adds `sign` times the contribution.
void Add(const DomainCounts& contribution, int sign, DomainCounts* counts) {
  counts->whole_free += sign * contribution.whole_free;
  counts->whole_free_degraded += sign * contribution.whole_free_degraded;
  counts->free_gpus += sign * contribution.free_gpus;
  counts->down += sign * contribution.down;
  counts->drained += sign * contribution.drained;
  counts->allocated_hosts += sign * contribution.allocated_hosts;
}

bool Holds(Unavailable reasons, Unavailable reason) { return (reasons & reason) != Unavailable::kNone; }

std::string Text(const DomainCounts& counts) {
  return absl::StrCat("{whole_free ", counts.whole_free, ", whole_free_degraded ", counts.whole_free_degraded, ", free_gpus ",
                      counts.free_gpus, ", down ", counts.down, ", drained ", counts.drained, ", allocated_hosts ", counts.allocated_hosts,
                      "}");
}

absl::Status Busy(const Host& host, const Allocation& wanted, const Allocation& holder, absl::string_view what) {
  return Precondition("HOST_BUSY", absl::StrCat("node/", host.name),
                      absl::StrCat(what, " of ", host.name, " cannot go to job ", wanted.job, " attempt ", wanted.attempt, ": job ",
                                   holder.job, " attempt ", holder.attempt, " holds it"));
}

}  // namespace

ClusterView::ClusterView(std::shared_ptr<const Fabric> fabric)
    : fabric_(std::move(fabric)),
      status_(fabric_->hosts().size()),
      allocations_(fabric_->hosts().size()),
      counts_(fabric_->domains().size()),
      versions_(fabric_->domains().size(), 1) {
  for (uint32_t h = 0; h < status_.size(); ++h) {
    status_[h].present = GpuSet::First(fabric_->host(HostId{h}).gpus);
    const DomainCounts contribution = Contribution(HostId{h});
    for (Tier tier = 1; tier <= fabric_->top(); ++tier) Add(contribution, 1, &counts_[fabric_->DomainOf(HostId{h}, tier).value]);
  }
}

bool ClusterView::WholeFree(HostId host) const {
  const HostStatus& status = status_[host.value];
  return status.unavailable == Unavailable::kNone && allocations_[host.value].empty() &&
         status.present == GpuSet::First(fabric_->host(host).gpus);
}

DomainCounts ClusterView::Contribution(HostId host) const {
  const HostStatus& status = status_[host.value];
  DomainCounts counts;
  if (WholeFree(host)) ++(status.rails_down > 0 ? counts.whole_free_degraded : counts.whole_free);
  counts.free_gpus = status.free().size();
  counts.down = Holds(status.unavailable, Unavailable::kDown);
  counts.drained = Holds(status.unavailable, Unavailable::kDrained);
  counts.allocated_hosts = !allocations_[host.value].empty();
  return counts;
}

template <typename Change>
void ClusterView::Update(HostId host, Change change) {
  const DomainCounts before = Contribution(host);
  change();
  const DomainCounts after = Contribution(host);
  ++next_version_;
  for (Tier tier = 1; tier <= fabric_->top(); ++tier) {
    const DomainId domain = fabric_->DomainOf(host, tier);
    Add(before, -1, &counts_[domain.value]);
    Add(after, 1, &counts_[domain.value]);
    versions_[domain.value] = next_version_;
  }
}

absl::Status ClusterView::Allocate(HostId host, const Allocation& allocation) {
  for (const Allocation& other : allocations_[host.value]) {
    if (other.exclusive || allocation.exclusive) return Busy(fabric_->host(host), allocation, other, "the whole");
    if (!(other.gpus & allocation.gpus).empty()) return Busy(fabric_->host(host), allocation, other, "a GPU");
  }
  Update(host, [&] {
    HostStatus& status = status_[host.value];
    status.allocated = status.allocated | allocation.gpus;
    status.exclusive = status.exclusive || allocation.exclusive;
    allocations_[host.value].push_back(allocation);
  });
  return absl::OkStatus();
}

bool ClusterView::Release(HostId host, JobId job, AttemptNumber attempt) {
  std::vector<Allocation>& allocations = allocations_[host.value];
  const auto held = [&](const Allocation& allocation) { return allocation.job == job && allocation.attempt == attempt; };
  if (!absl::c_any_of(allocations, held)) return false;
  Update(host, [&] {
    std::erase_if(allocations, held);
    HostStatus& status = status_[host.value];
    status.allocated = GpuSet();
    status.exclusive = false;
    for (const Allocation& kept : allocations) {
      status.allocated = status.allocated | kept.gpus;
      status.exclusive = status.exclusive || kept.exclusive;
    }
  });
  return true;
}

void ClusterView::SetUnavailable(HostId host, Unavailable reasons) {
  if (status_[host.value].unavailable == reasons) return;
  Update(host, [&] { status_[host.value].unavailable = reasons; });
}

void ClusterView::SetPresent(HostId host, GpuSet gpus) {
  gpus = gpus & GpuSet::First(fabric_->host(host).gpus);
  if (status_[host.value].present == gpus) return;
  Update(host, [&] { status_[host.value].present = gpus; });
}

void ClusterView::SetRailsDown(HostId host, int rails) {
  CHECK(rails >= 0) << "host " << fabric_->host(host).name << " rails " << rails;
  if (status_[host.value].rails_down == rails) return;
  Update(host, [&] { status_[host.value].rails_down = rails; });
}

absl::StatusOr<ClusterView> ClusterView::MovedTo(std::shared_ptr<const Fabric> fabric) const {
  ClusterView moved(std::move(fabric));
  std::vector<std::string> lost;
  for (uint32_t h = 0; h < status_.size(); ++h) {
    const Host& host = fabric_->host(HostId{h});
    const std::optional<HostId> to = moved.fabric_->FindHost(host.name);
    if (!to.has_value()) {
      if (!allocations_[h].empty()) lost.push_back(host.name);
      continue;
    }
    moved.Update(*to, [&] {
      HostStatus& status = moved.status_[to->value];
      const GpuSet described = status.present;
      status = status_[h];
      // GPUs that were missing stay missing; those that only the new description has are taken as there.
      status.present = described - (GpuSet::First(host.gpus) - status_[h].present);
      moved.allocations_[to->value] = allocations_[h];
    });
  }
  if (!lost.empty()) {
    const std::string hosts = FoldHostSet(lost);
    return Precondition("HOST_BUSY", absl::StrCat("node/", lost[0]),
                        absl::StrCat("the new fabric lacks ", hosts, ", which hold", lost.size() == 1 ? "s" : "", " work"));
  }
  return moved;
}

absl::Status ClusterView::CheckCounts() const {
  std::vector<DomainCounts> walked(counts_.size());
  for (uint32_t h = 0; h < status_.size(); ++h) {
    GpuSet allocated;
    bool exclusive = false;
    for (const Allocation& allocation : allocations_[h]) {
      if (!(allocated & allocation.gpus).empty()) {
        return absl::InternalError(
            absl::StrCat("a GPU of ", fabric_->host(HostId{h}).name, " is allocated twice, to job ", allocation.job));
      }
      allocated = allocated | allocation.gpus;
      exclusive = exclusive || allocation.exclusive;
    }
    if (allocated != status_[h].allocated || exclusive != status_[h].exclusive) {
      return absl::InternalError(absl::StrCat("host ", fabric_->host(HostId{h}).name, " does not sum up its allocations"));
    }
    const DomainCounts contribution = Contribution(HostId{h});
    for (DomainId domain = fabric_->host(HostId{h}).parent;; domain = fabric_->domain(domain).parent) {
      Add(contribution, 1, &walked[domain.value]);
      if (domain == fabric_->root()) break;
    }
  }
  for (uint32_t d = 0; d < counts_.size(); ++d) {
    if (walked[d] != counts_[d]) {
      return absl::InternalError(
          absl::StrCat("counts of ", fabric_->domain(DomainId{d}).name, " are ", Text(counts_[d]), ", a walk gives ", Text(walked[d])));
    }
  }
  return absl::OkStatus();
}

}  // namespace closeknit
