// The fabric: a tree of domains with hosts as leaves. Immutable; a change makes a new one.
//
// Tier 1 is the domain that a host's NICs plug into (rack, leaf, scalable unit), the top tier is the root, one domain. All hosts are
// equally deep: Build puts pass-through domains ("edge1@pod") where a description's branches are shorter. Hosts are numbered depth first in
// the order of the description, so that the hosts of every domain are one contiguous range: this is "fabric order".
#ifndef CLOSEKNIT_CLUSTER_MODEL_FABRIC_H_
#define CLOSEKNIT_CLUSTER_MODEL_FABRIC_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster_model/ids.h"

namespace closeknit {

// Parallel links from a domain (or host) upwards, taken as one.
struct Uplinks {
  uint32_t count = 0;  // 0: not stated
  double gbps = 0;     // of each link, Gbit/s
  double total_gbps() const { return count * gbps; }
  friend bool operator==(const Uplinks&, const Uplinks&) = default;
};

struct Host {
  std::string name;
  int gpus = 8;                         // 1..64
  int rails = 8;                        // NIC planes; 0: not stated
  Uplinks nics;                         // tier 0: host to its tier-1 domain
  std::vector<std::string> features;    // sorted
  std::vector<std::string> partitions;  // sorted; empty: "default" only
  DomainId parent;                      // its tier-1 domain
  friend bool operator==(const Host&, const Host&) = default;
};

struct Domain {
  std::string name;
  Tier tier = 1;
  DomainId parent;                 // of the root: itself
  std::vector<DomainId> children;  // one tier lower, in description order; empty at tier 1
  HostId first_host, end_host;     // hosts [first, end) in fabric order
  Uplinks uplinks;                 // to the parent; of the root: not stated
  int host_count() const { return static_cast<int>(end_host.value - first_host.value); }
};

// What a reader found, before it is checked and numbered. Children are by index into `domains`, hosts by index into `hosts`.
struct FabricDescription {
  struct DomainEntry {
    std::string name;
    std::vector<int> child_domains = {};
    std::vector<int> hosts = {};
    Uplinks uplinks = {};
  };
  std::string name;                     // of the cluster
  std::vector<std::string> tier_names;  // from tier 1 up; may be empty: rack, pod, core, tier4, ...
  std::vector<DomainEntry> domains;
  std::vector<Host> hosts;  // `parent` is not used
  std::vector<int> roots;   // more than one: joined below one root that the builder adds
};

class Fabric {
 public:
  // kInvalidArgument: no host, a duplicate name, a domain or host without parent or with two, a domain without hosts, a cycle, more than
  // kMaxTiers tiers, more tier names than tiers, a host with 0 or more than 64 GPUs. The message names the culprit. Tier names that are
  // missing at the top are the usual ones. Domains are numbered in pre-order, the root first. O(domains + hosts).
  static absl::StatusOr<Fabric> Build(FabricDescription description);

  const std::string& name() const { return name_; }
  Tier top() const { return static_cast<Tier>(tier_names_.size()); }
  // 1..top(); tier 0 is "host".
  absl::string_view TierName(Tier tier) const;
  // By name, or "tier2"; 1..top(). nullopt: no such tier.
  std::optional<Tier> FindTier(absl::string_view name) const;
  // "rack, pod, core": for messages.
  std::string TierNames() const;

  absl::Span<const Host> hosts() const { return hosts_; }
  absl::Span<const Domain> domains() const { return domains_; }
  const Host& host(HostId id) const { return hosts_[id.value]; }
  const Domain& domain(DomainId id) const { return domains_[id.value]; }
  DomainId root() const { return root_; }
  std::optional<HostId> FindHost(absl::string_view name) const;
  std::optional<DomainId> FindDomain(absl::string_view name) const;
  // Domains of one tier in fabric order.
  absl::Span<const DomainId> DomainsAt(Tier tier) const { return by_tier_[tier]; }
  // The domain of `tier` (1..top) above a host. O(1).
  DomainId DomainOf(HostId host, Tier tier) const { return DomainId{ancestors_[host.value * top() + tier - 1]}; }
  // Tier of the lowest domain that holds both; 0 for the same host. O(tiers).
  Tier CommonTier(HostId a, HostId b) const;
  // Whether every domain of every tier below the root states its uplinks, and every host its NICs.
  bool StatesCapacities() const { return states_capacities_; }
  int total_gpus() const { return total_gpus_; }
  // GPUs of each host where all have equally many; else 0.
  int uniform_gpus() const { return uniform_gpus_; }
  // Whether any host names partitions.
  bool has_partitions() const { return has_partitions_; }

 private:
  friend class FabricBuilder;
  Fabric() = default;

  std::string name_;
  std::vector<std::string> tier_names_;
  std::vector<Host> hosts_;
  std::vector<Domain> domains_;
  std::vector<std::vector<DomainId>> by_tier_;  // [0] is empty
  std::vector<uint32_t> ancestors_;             // [host * top + tier - 1]
  absl::flat_hash_map<std::string, HostId> host_by_name_;
  absl::flat_hash_map<std::string, DomainId> domain_by_name_;
  DomainId root_;
  bool states_capacities_ = false;
  int total_gpus_ = 0;
  int uniform_gpus_ = 0;
  bool has_partitions_ = false;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_FABRIC_H_
