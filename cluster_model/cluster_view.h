// What is allocated to whom on a fabric, with counts per domain that are kept, not computed.
//
// A value: copying it (O(hosts + domains), about 1 ms at 43,750 hosts) gives the snapshot that searches and readers work on.
#ifndef CLOSEKNIT_CLUSTER_MODEL_CLUSTER_VIEW_H_
#define CLOSEKNIT_CLUSTER_MODEL_CLUSTER_VIEW_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cluster_model/fabric.h"
#include "cluster_model/ids.h"

namespace closeknit {

// Why a host takes no new work; several may hold.
enum class Unavailable : uint8_t {
  kNone = 0,
  kDown = 1,      // no agent connected
  kDrained = 2,   // by an operator or by policy
  kReserved = 4,  // for somebody else
  kResting = 8,   // could not prepare a gang; tried again after a back-off
};
constexpr Unavailable operator|(Unavailable a, Unavailable b) {
  return static_cast<Unavailable>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr Unavailable operator&(Unavailable a, Unavailable b) {
  return static_cast<Unavailable>(static_cast<uint8_t>(a) & static_cast<uint8_t>(b));
}

struct Allocation {
  JobId job = 0;
  AttemptNumber attempt = 0;
  GpuSet gpus = GpuSet();
  bool exclusive = false;                            // a job without GPUs that holds the whole host
  absl::Time expected_end = absl::InfiniteFuture();  // by the job's time limit
};

struct HostStatus {
  Unavailable unavailable = Unavailable::kNone;
  GpuSet present;  // GPUs that work
  GpuSet allocated;
  int rails_down = 0;      // degraded when > 0
  bool exclusive = false;  // an exclusive allocation is on it
  GpuSet free() const { return unavailable == Unavailable::kNone && !exclusive ? present - allocated : GpuSet(); }
};

// Counts of one domain. "Whole free": takes new work, nothing allocated, all the GPUs of its description present.
struct DomainCounts {
  int whole_free = 0;           // hosts that are whole free and have all rails
  int whole_free_degraded = 0;  // hosts that are whole free but have a rail down
  int free_gpus = 0;
  int down = 0, drained = 0;  // hosts (a host may count in both)
  int allocated_hosts = 0;    // hosts with at least one allocation
  friend bool operator==(const DomainCounts&, const DomainCounts&) = default;
};

class ClusterView {
 public:
  // Every host up and free with all the GPUs of its description. (The scheduler marks hosts kDown until their agents come.)
  explicit ClusterView(std::shared_ptr<const Fabric> fabric);

  const Fabric& fabric() const { return *fabric_; }
  const std::shared_ptr<const Fabric>& shared_fabric() const { return fabric_; }
  const HostStatus& status(HostId host) const { return status_[host.value]; }
  absl::Span<const Allocation> allocations(HostId host) const { return allocations_[host.value]; }
  const DomainCounts& counts(DomainId domain) const { return counts_[domain.value]; }
  bool WholeFree(HostId host) const;  // in the sense of DomainCounts, rails up or not
  // Grows whenever something below the domain changes; equal versions mean equal contents below, also between a view and snapshots of it
  // that were not changed themselves. For caches.
  uint64_t version(DomainId domain) const { return versions_[domain.value]; }

  // All changes cost O(tiers).
  // kFailedPrecondition if a GPU is allocated already, or the host has an exclusive allocation, or (exclusive) any allocation. Whether the
  // host takes new work, and whether the GPUs work, is not asked: after a restart allocations are older than what is known of the host.
  absl::Status Allocate(HostId host, const Allocation& allocation);
  // Whatever the attempt holds on the host; nothing if it holds nothing. Returns whether it held something.
  bool Release(HostId host, JobId job, AttemptNumber attempt);
  void SetUnavailable(HostId host, Unavailable reasons);
  void SetPresent(HostId host, GpuSet gpus);  // GPUs beyond the host's description are ignored
  void SetRailsDown(HostId host, int rails);

  // The same allocations and states on another fabric, matched by host name; hosts that are new are up and free. kFailedPrecondition names
  // hosts that hold allocations and are missing from the new fabric.
  absl::StatusOr<ClusterView> MovedTo(std::shared_ptr<const Fabric> fabric) const;

  // Invariant 7: every count equals what a walk over the tree gives. O(hosts). For tests, the simulator and fsck.
  absl::Status CheckCounts() const;

 private:
  DomainCounts Contribution(HostId host) const;
  template <typename Change>
  void Update(HostId host, Change change);

  std::shared_ptr<const Fabric> fabric_;
  std::vector<HostStatus> status_;
  std::vector<std::vector<Allocation>> allocations_;
  std::vector<DomainCounts> counts_;
  std::vector<uint64_t> versions_;
  uint64_t next_version_ = 1;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_CLUSTER_VIEW_H_
