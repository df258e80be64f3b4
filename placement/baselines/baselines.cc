#include "placement/baselines/baselines.h"

#include <algorithm>
#include <limits>

#include "proto/base/host_list.h"

namespace closeknit {
namespace {

bool IsFree(const ClusterView& view, HostId host) { return view.WholeFree(host) && view.status(host).rails_down == 0; }

int FreeHosts(const ClusterView& view, DomainId domain) { return view.counts(domain).whole_free; }

// In fabric order. O(hosts of the domain).
std::vector<HostId> FreeHostsOf(const ClusterView& view, DomainId id) {
  const Domain& domain = view.fabric().domain(id);
  std::vector<HostId> hosts;
  for (uint32_t h = domain.first_host.value; h < domain.end_host.value; ++h) {
    if (IsFree(view, HostId{h})) hosts.push_back(HostId{h});
  }
  return hosts;
}

void SortByName(const Fabric& fabric, std::vector<HostId>* hosts) {
  std::sort(hosts->begin(), hosts->end(), [&](HostId a, HostId b) { return HostNameLess(fabric.host(a).name, fabric.host(b).name); });
}

// splitmix64 (Steele, Lea, Flood 2014): small, and the same on every machine.
uint64_t NextRandom(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// The lowest domain with at least `slots` free hosts; of one tier the one for which `better(candidate, best)`.
template <typename Better>
std::optional<DomainId> LowestThatFits(const ClusterView& view, int slots, Better better) {
  for (Tier tier = 1; tier <= view.fabric().top(); ++tier) {
    std::optional<DomainId> best;
    for (const DomainId domain : view.fabric().DomainsAt(tier)) {
      if (FreeHosts(view, domain) >= slots && (!best || better(domain, *best))) best = domain;
    }
    if (best) return best;
  }
  return std::nullopt;
}

auto FewestFree(const ClusterView& view) {
  return [&view](DomainId a, DomainId b) { return FreeHosts(view, a) < FreeHosts(view, b); };
}

// Takes `slots` hosts from domains by best fit: while some domain has all that is missing, the smallest such; else the freest.
// Returns (domain, hosts taken) in the order of choice. O(domains²) at worst, domains being those of one tier in one parent.
std::vector<std::pair<DomainId, int>> BestFitShares(const ClusterView& view, std::vector<DomainId> domains, int slots) {
  std::vector<std::pair<DomainId, int>> shares;
  // Freest first, so that each step looks at a prefix; stable: ties stay in fabric order.
  std::stable_sort(domains.begin(), domains.end(), [&](DomainId a, DomainId b) { return FreeHosts(view, a) > FreeHosts(view, b); });
  size_t next = 0;
  while (slots > 0 && next < domains.size() && FreeHosts(view, domains[next]) > 0) {
    if (FreeHosts(view, domains[next]) < slots) {
      shares.emplace_back(domains[next], FreeHosts(view, domains[next]));
    } else {
      size_t smallest = next;
      for (size_t i = next; i < domains.size() && FreeHosts(view, domains[i]) >= slots; ++i) {
        if (FreeHosts(view, domains[i]) < FreeHosts(view, domains[smallest])) smallest = i;
      }
      shares.emplace_back(domains[smallest], slots);
    }
    slots -= shares.back().second;
    ++next;
  }
  return shares;
}

std::vector<DomainId> DomainsBelow(const Fabric& fabric, DomainId top, Tier tier) {
  std::vector<DomainId> below;
  for (const DomainId id : fabric.DomainsAt(tier)) {
    const Domain& domain = fabric.domain(id);
    if (domain.first_host >= fabric.domain(top).first_host && domain.end_host <= fabric.domain(top).end_host) below.push_back(id);
  }
  return below;
}

void TakeFirst(const ClusterView& view, DomainId domain, int count, std::vector<HostId>* hosts) {
  std::vector<HostId> free = FreeHostsOf(view, domain);
  SortByName(view.fabric(), &free);
  hosts->insert(hosts->end(), free.begin(), free.begin() + std::min<size_t>(count, free.size()));
}

// Kueue's way down: shares of the children, in each child again, appended in domain order.
void DescendBestFit(const ClusterView& view, DomainId id, int slots, std::vector<HostId>* hosts) {
  const Domain& domain = view.fabric().domain(id);
  if (domain.tier == 1) {
    TakeFirst(view, id, slots, hosts);
    return;
  }
  std::vector<std::pair<DomainId, int>> shares = BestFitShares(view, domain.children, slots);
  std::sort(shares.begin(), shares.end());
  for (const auto& [child, share] : shares) DescendBestFit(view, child, share, hosts);
}

// The order in which tasks that each take "the host nearest to those placed" fill a domain: a child domain is filled before the next is
// opened, and the next is the one with the first free host by name.
void AppendNearestFirst(const ClusterView& view, DomainId id, std::vector<HostId>* hosts) {
  const Fabric& fabric = view.fabric();
  const Domain& domain = fabric.domain(id);
  if (domain.tier == 1) {
    TakeFirst(view, id, domain.host_count(), hosts);
    return;
  }
  std::vector<std::vector<HostId>> children;
  for (const DomainId child : domain.children) {
    std::vector<HostId>& order = children.emplace_back();
    AppendNearestFirst(view, child, &order);
    if (order.empty()) children.pop_back();
  }
  std::sort(children.begin(), children.end(), [&](const std::vector<HostId>& a, const std::vector<HostId>& b) {
    return HostNameLess(fabric.host(a.front()).name, fabric.host(b.front()).name);
  });
  for (const std::vector<HostId>& child : children) hosts->insert(hosts->end(), child.begin(), child.end());
}

}  // namespace

HostsInRankOrder PlaceAtRandom(const ClusterView& view, int slots, uint64_t seed) {
  std::vector<HostId> hosts = FreeHostsOf(view, view.fabric().root());
  if (static_cast<int>(hosts.size()) < slots) return std::nullopt;
  for (int i = 0; i < slots; ++i) std::swap(hosts[i], hosts[i + NextRandom(&seed) % (hosts.size() - i)]);
  hosts.resize(slots);
  return hosts;
}

HostsInRankOrder PlaceFirstFit(const ClusterView& view, int slots) {
  if (FreeHosts(view, view.fabric().root()) < slots) return std::nullopt;
  std::vector<HostId> hosts;
  TakeFirst(view, view.fabric().root(), slots, &hosts);
  return hosts;
}

HostsInRankOrder PlaceSlurmTree(const ClusterView& view, int slots) {
  const std::optional<DomainId> top = LowestThatFits(view, slots, FewestFree(view));
  if (!top) return std::nullopt;
  std::vector<HostId> hosts;
  for (const auto& [leaf, share] : BestFitShares(view, DomainsBelow(view.fabric(), *top, 1), slots)) TakeFirst(view, leaf, share, &hosts);
  SortByName(view.fabric(), &hosts);
  return hosts;
}

HostsInRankOrder PlaceSlurmBlock(const ClusterView& view, int slots, Tier block_tier) {
  const absl::Span<const DomainId> blocks = view.fabric().DomainsAt(block_tier);
  for (size_t size = 1; size < 2 * blocks.size(); size *= 2) {
    size_t best = blocks.size();
    int best_free = std::numeric_limits<int>::max();
    for (size_t first = 0; first < blocks.size(); first += size) {
      int free = 0;
      for (size_t i = first; i < std::min(first + size, blocks.size()); ++i) free += FreeHosts(view, blocks[i]);
      if (free >= slots && free < best_free) {
        best = first;
        best_free = free;
      }
    }
    if (best == blocks.size()) continue;
    const size_t end = std::min(best + size, blocks.size());
    std::vector<std::pair<DomainId, int>> shares = BestFitShares(view, {blocks.begin() + best, blocks.begin() + end}, slots);
    std::sort(shares.begin(), shares.end());
    std::vector<HostId> hosts;
    for (const auto& [block, share] : shares) TakeFirst(view, block, share, &hosts);
    return hosts;
  }
  return std::nullopt;
}

HostsInRankOrder PlaceKueueBestFit(const ClusterView& view, int slots) {
  const std::optional<DomainId> top = LowestThatFits(view, slots, FewestFree(view));
  if (!top) return std::nullopt;
  std::vector<HostId> hosts;
  DescendBestFit(view, *top, slots, &hosts);
  return hosts;
}

HostsInRankOrder PlaceVolcanoHyperNode(const ClusterView& view, int slots) {
  const Fabric& fabric = view.fabric();
  const auto fuller = [&](DomainId a, DomainId b) {
    const double used_a = 1 - static_cast<double>(FreeHosts(view, a)) / fabric.domain(a).host_count();
    const double used_b = 1 - static_cast<double>(FreeHosts(view, b)) / fabric.domain(b).host_count();
    return used_a > used_b;
  };
  const std::optional<DomainId> top = LowestThatFits(view, slots, fuller);
  if (!top) return std::nullopt;
  std::vector<HostId> hosts;
  AppendNearestFirst(view, *top, &hosts);
  hosts.resize(slots);
  return hosts;
}

absl::Span<const Baseline> AllBaselines() {
  static constexpr uint64_t kSeed = 1;
  static const Baseline baselines[] = {
      {"random", [](const ClusterView& view, int slots) { return PlaceAtRandom(view, slots, kSeed); }},
      {"first-fit", PlaceFirstFit},
      {"slurm-tree", PlaceSlurmTree},
      {"slurm-block",
       [](const ClusterView& view, int slots) { return PlaceSlurmBlock(view, slots, std::min<Tier>(2, view.fabric().top())); }},
      {"kueue-best-fit", PlaceKueueBestFit},
      {"volcano-hypernode", PlaceVolcanoHyperNode},
  };
  return baselines;
}

}  // namespace closeknit
