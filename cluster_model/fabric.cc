#include "cluster_model/fabric.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr int kMaxGpus = 64;  // bits of a GpuSet
constexpr int kNone = -1;

std::string DefaultTierName(Tier tier) {
  static constexpr absl::string_view kNames[] = {"rack", "pod", "core"};
  return tier <= 3 ? std::string(kNames[tier - 1]) : absl::StrCat("tier", tier);
}

// Names for all of `top` tiers: those given, then the usual ones where they are not taken.
absl::StatusOr<std::vector<std::string>> AllTierNames(std::vector<std::string> names, Tier top) {
  if (static_cast<int>(names.size()) > top) {
    return absl::InvalidArgumentError(absl::StrCat("tier names ", absl::StrJoin(names, ", "), " are ", names.size(),
                                                   ", but the fabric has ", top, " tiers; give one name a tier, from the hosts up"));
  }
  for (Tier tier = static_cast<int>(names.size()) + 1; tier <= top; ++tier) {
    const std::string usual = DefaultTierName(tier);
    names.push_back(absl::c_linear_search(names, usual) ? absl::StrCat("tier", tier) : usual);
  }
  absl::flat_hash_set<std::string> seen = {"host"};
  for (Tier tier = 1; tier <= top; ++tier) {
    const std::string& name = names[tier - 1];
    if (name.empty()) return absl::InvalidArgumentError(absl::StrCat("the name of tier ", tier, " is empty"));
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat("tier name '", name, "' is taken; tiers have different names, and tier 0 is 'host'"));
    }
    for (Tier other = 1; other <= kMaxTiers; ++other) {
      if (other != tier && name == absl::StrCat("tier", other)) {
        return absl::InvalidArgumentError(absl::StrCat("tier ", tier, " cannot be named '", name, "': that means tier ", other));
      }
    }
  }
  return names;
}

}  // namespace

// Checks a description, then numbers it depth first.
class FabricBuilder {
 public:
  explicit FabricBuilder(FabricDescription description) : in_(std::move(description)) {}

  absl::StatusOr<Fabric> Build() {
    RETURN_IF_ERROR(CheckHosts());
    RETURN_IF_ERROR(FindParents());
    RETURN_IF_ERROR(OrderFromRoots());
    RETURN_IF_ERROR(ComputeHeights());
    ASSIGN_OR_RETURN(out_.tier_names_, AllTierNames(std::move(in_.tier_names), top_));
    RETURN_IF_ERROR(Number());
    Summarize();
    return std::move(out_);
  }

 private:
  absl::Status CheckHosts() const {
    if (in_.hosts.empty()) return absl::InvalidArgumentError("the fabric has no host");
    for (const Host& host : in_.hosts) {
      if (host.name.empty()) return absl::InvalidArgumentError("a host has an empty name");
      if (host.gpus < 1 || host.gpus > kMaxGpus) {
        return absl::InvalidArgumentError(absl::StrCat("host ", host.name, " has ", host.gpus, " GPUs; 1..", kMaxGpus));
      }
      if (host.rails < 0 || host.rails > kMaxGpus) {
        return absl::InvalidArgumentError(absl::StrCat("host ", host.name, " has ", host.rails, " rails; 0..", kMaxGpus));
      }
    }
    return absl::OkStatus();
  }

  // Every domain that is no root and every host has one parent.
  absl::Status FindParents() {
    domain_parent_.assign(in_.domains.size(), kNone);
    std::vector<int> host_parent(in_.hosts.size(), kNone);
    for (int d = 0; d < static_cast<int>(in_.domains.size()); ++d) {
      const FabricDescription::DomainEntry& domain = in_.domains[d];
      if (domain.name.empty()) return absl::InvalidArgumentError("a domain has an empty name");
      if (domain.child_domains.empty() && domain.hosts.empty()) {
        return absl::InvalidArgumentError(absl::StrCat("domain ", domain.name, " holds no host"));
      }
      for (const int child : domain.child_domains) {
        if (domain_parent_[child] != kNone) return TwoParents("domain", in_.domains[child].name, domain_parent_[child], d);
        domain_parent_[child] = d;
      }
      for (const int host : domain.hosts) {
        if (host_parent[host] != kNone) return TwoParents("host", in_.hosts[host].name, host_parent[host], d);
        host_parent[host] = d;
      }
    }
    for (size_t h = 0; h < host_parent.size(); ++h) {
      if (host_parent[h] == kNone) {
        return absl::InvalidArgumentError(absl::StrCat("host ", in_.hosts[h].name, " is below no domain; put it below one"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status TwoParents(absl::string_view kind, absl::string_view name, int first, int second) const {
    return absl::InvalidArgumentError(absl::StrCat(kind, " ", name, " is below both ", in_.domains[first].name, " and ",
                                                   in_.domains[second].name, "; it can be below one domain only"));
  }

  // Breadth first from the roots; what that does not reach is an orphan or hangs on a cycle.
  absl::Status OrderFromRoots() {
    std::vector<bool> is_root(in_.domains.size());
    for (const int root : in_.roots) {
      if (domain_parent_[root] != kNone) {
        return absl::InvalidArgumentError(
            absl::StrCat("root ", in_.domains[root].name, " is below domain ", in_.domains[domain_parent_[root]].name));
      }
      if (is_root[root]) return absl::InvalidArgumentError(absl::StrCat("root ", in_.domains[root].name, " is given twice"));
      is_root[root] = true;
      order_.push_back(root);
    }
    for (size_t i = 0; i < order_.size(); ++i) {
      const auto& children = in_.domains[order_[i]].child_domains;
      order_.insert(order_.end(), children.begin(), children.end());
    }
    if (order_.size() == in_.domains.size()) return absl::OkStatus();
    std::vector<bool> reached(in_.domains.size());
    for (const int d : order_) reached[d] = true;
    int lost = 0;
    while (reached[lost]) ++lost;
    // Walk up as often as there are domains: that ends at an orphan's top, or inside a cycle.
    for (size_t steps = 0; steps < in_.domains.size() && domain_parent_[lost] != kNone; ++steps) lost = domain_parent_[lost];
    const std::string& name = in_.domains[lost].name;
    if (domain_parent_[lost] == kNone) {
      return absl::InvalidArgumentError(absl::StrCat("domain ", name, " is below no other domain and is no root"));
    }
    return absl::InvalidArgumentError(absl::StrCat("domain ", name, " is below itself: ", CycleThrough(lost)));
  }

  // "a > b > a"
  std::string CycleThrough(int start) const {
    std::vector<int> up = {start};
    while (up.size() == 1 || up.back() != start) up.push_back(domain_parent_[up.back()]);
    return absl::StrJoin(up.rbegin(), up.rend(), " > ", [this](std::string* out, int d) { absl::StrAppend(out, in_.domains[d].name); });
  }

  // A domain is one tier above its highest child. Tiers are heights; shorter branches are filled up in Number().
  absl::Status ComputeHeights() {
    height_.assign(in_.domains.size(), 1);
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
      for (const int child : in_.domains[*it].child_domains) height_[*it] = std::max(height_[*it], height_[child] + 1);
      if (height_[*it] > kMaxTiers) {
        return absl::InvalidArgumentError(absl::StrCat("domain ", in_.domains[*it].name, " has more than ", kMaxTiers - 1,
                                                       " tiers below it; at most ", kMaxTiers, " tiers are supported"));
      }
    }
    for (const int root : in_.roots) top_ = std::max(top_, height_[root]);
    if (in_.roots.size() > 1) ++top_;
    if (top_ > kMaxTiers) {
      return absl::InvalidArgumentError(
          absl::StrCat("the fabric has ", in_.roots.size(), " roots, and with one domain above them more than ", kMaxTiers, " tiers"));
    }
    return absl::OkStatus();
  }

  absl::Status Number() {
    out_.name_ = in_.name;
    out_.by_tier_.resize(top_ + 1);
    out_.hosts_.reserve(in_.hosts.size());
    out_.host_by_name_.reserve(in_.hosts.size());
    out_.ancestors_.reserve(in_.hosts.size() * top_);
    if (in_.roots.size() == 1) return AddDomain(in_.roots[0], DomainId{0});
    std::string name = in_.name.empty() ? "fabric" : in_.name;
    while (absl::c_any_of(in_.domains, [&](const auto& domain) { return domain.name == name; })) name += "-root";
    ASSIGN_OR_RETURN(const DomainId root, NewDomain(std::move(name), top_, DomainId{0}, Uplinks{}));
    for (const int child : in_.roots) RETURN_IF_ERROR(AddBranch(child, root, top_));
    Close(root);
    return absl::OkStatus();
  }

  // Depth is at most kMaxTiers.
  absl::Status AddDomain(int index, DomainId parent) {
    FabricDescription::DomainEntry& entry = in_.domains[index];
    ASSIGN_OR_RETURN(const DomainId id, NewDomain(std::move(entry.name), height_[index], parent, entry.uplinks));
    RETURN_IF_ERROR(AddHosts(entry, id));
    for (const int child : entry.child_domains) RETURN_IF_ERROR(AddBranch(child, id, height_[index]));
    Close(id);
    return absl::OkStatus();
  }

  // A child below a parent of `parent_tier`, with pass-through domains for the tiers between.
  absl::Status AddBranch(int index, DomainId parent, Tier parent_tier) {
    std::vector<DomainId> between;
    const std::string name = in_.domains[index].name;
    for (Tier tier = parent_tier - 1; tier > height_[index]; --tier) {
      ASSIGN_OR_RETURN(parent, NewDomain(PassThroughName(name, tier), tier, parent, in_.domains[index].uplinks));
      between.push_back(parent);
    }
    RETURN_IF_ERROR(AddDomain(index, parent));
    for (auto it = between.rbegin(); it != between.rend(); ++it) Close(*it);
    return absl::OkStatus();
  }

  // Hosts that hang on a higher domain get pass-through domains below it, which are as wide as the hosts' NICs together.
  absl::Status AddHosts(const FabricDescription::DomainEntry& entry, DomainId domain) {
    if (entry.hosts.empty()) return absl::OkStatus();
    std::vector<DomainId> between;
    Uplinks nics = in_.hosts[entry.hosts[0]].nics;
    nics.count *= static_cast<uint32_t>(entry.hosts.size());
    const std::string name = out_.domains_[domain.value].name;
    for (Tier tier = out_.domains_[domain.value].tier - 1; tier >= 1; --tier) {
      ASSIGN_OR_RETURN(domain, NewDomain(PassThroughName(name, tier), tier, domain, nics));
      between.push_back(domain);
    }
    for (const int host : entry.hosts) RETURN_IF_ERROR(AddHost(std::move(in_.hosts[host]), domain));
    for (auto it = between.rbegin(); it != between.rend(); ++it) Close(*it);
    return absl::OkStatus();
  }

  absl::Status AddHost(Host host, DomainId parent) {
    const HostId id{static_cast<uint32_t>(out_.hosts_.size())};
    if (!out_.host_by_name_.emplace(host.name, id).second) {
      return absl::InvalidArgumentError(absl::StrCat("host ", host.name, " is there twice; host names are unique"));
    }
    std::sort(host.features.begin(), host.features.end());
    std::sort(host.partitions.begin(), host.partitions.end());
    host.parent = parent;
    for (Tier tier = 1; tier <= top_; ++tier, parent = out_.domains_[parent.value].parent) out_.ancestors_.push_back(parent.value);
    out_.hosts_.push_back(std::move(host));
    return absl::OkStatus();
  }

  // "edge1@pod": stands for edge1 where others have a pod.
  std::string PassThroughName(absl::string_view name, Tier tier) const { return absl::StrCat(name, "@", out_.tier_names_[tier - 1]); }

  absl::StatusOr<DomainId> NewDomain(std::string name, Tier tier, DomainId parent, Uplinks uplinks) {
    const DomainId id{static_cast<uint32_t>(out_.domains_.size())};
    if (!out_.domain_by_name_.emplace(name, id).second) {
      return absl::InvalidArgumentError(absl::StrCat("domain ", name, " is there twice; domain names are unique"));
    }
    if (id != parent) out_.domains_[parent.value].children.push_back(id);
    if (tier == top_) uplinks = Uplinks{};
    const HostId first{static_cast<uint32_t>(out_.hosts_.size())};
    out_.domains_.push_back({.name = std::move(name),
                             .tier = tier,
                             .parent = parent,
                             .children = {},
                             .first_host = first,
                             .end_host = first,
                             .uplinks = uplinks});
    out_.by_tier_[tier].push_back(id);
    return id;
  }

  void Close(DomainId id) { out_.domains_[id.value].end_host = HostId{static_cast<uint32_t>(out_.hosts_.size())}; }

  void Summarize() {
    out_.root_ = DomainId{0};
    out_.states_capacities_ =
        absl::c_all_of(out_.hosts_, [](const Host& host) { return host.nics.total_gbps() > 0; }) &&
        absl::c_all_of(out_.domains_, [&](const Domain& domain) { return domain.tier == top_ || domain.uplinks.total_gbps() > 0; });
    out_.uniform_gpus_ = out_.hosts_[0].gpus;
    for (const Host& host : out_.hosts_) {
      out_.total_gpus_ += host.gpus;
      if (host.gpus != out_.uniform_gpus_) out_.uniform_gpus_ = 0;
      if (!host.partitions.empty()) out_.has_partitions_ = true;
    }
  }

  FabricDescription in_;
  std::vector<int> domain_parent_;  // by index into in_.domains; kNone: a root
  std::vector<int> order_;          // parents before children
  std::vector<Tier> height_;
  Tier top_ = 0;
  Fabric out_;
};

absl::StatusOr<Fabric> Fabric::Build(FabricDescription description) { return FabricBuilder(std::move(description)).Build(); }

absl::string_view Fabric::TierName(Tier tier) const {
  if (tier == 0) return "host";
  CHECK(tier >= 1 && tier <= top()) << "tier " << tier << " of " << top();
  return tier_names_[tier - 1];
}

std::optional<Tier> Fabric::FindTier(absl::string_view name) const {
  for (Tier tier = 1; tier <= top(); ++tier) {
    if (tier_names_[tier - 1] == name || name == absl::StrCat("tier", tier)) return tier;
  }
  return std::nullopt;
}

std::string Fabric::TierNames() const { return absl::StrJoin(tier_names_, ", "); }

std::optional<HostId> Fabric::FindHost(absl::string_view name) const {
  const auto it = host_by_name_.find(name);
  if (it == host_by_name_.end()) return std::nullopt;
  return it->second;
}

std::optional<DomainId> Fabric::FindDomain(absl::string_view name) const {
  const auto it = domain_by_name_.find(name);
  if (it == domain_by_name_.end()) return std::nullopt;
  return it->second;
}

Tier Fabric::CommonTier(HostId a, HostId b) const {
  if (a == b) return 0;
  for (Tier tier = 1; tier < top(); ++tier) {
    if (DomainOf(a, tier) == DomainOf(b, tier)) return tier;
  }
  return top();
}

}  // namespace closeknit
