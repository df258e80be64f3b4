#include "placement/measure.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace closeknit {

std::array<int, kMaxTiers + 1> CountDomains(const Fabric& fabric, absl::Span<const HostId> hosts) {
  std::array<int, kMaxTiers + 1> domains{};
  domains[0] = static_cast<int>(hosts.size());
  for (Tier t = 1; t <= fabric.top(); ++t) {
    std::vector<DomainId> used;
    for (const HostId host : hosts) {
      const DomainId domain = fabric.DomainOf(host, t);
      if (used.empty() || used.back() != domain) used.push_back(domain);
    }
    std::sort(used.begin(), used.end());
    domains[t] = static_cast<int>(std::unique(used.begin(), used.end()) - used.begin());
  }
  return domains;
}

int FewestDomains(const Usable& usable, Tier tier, int n) {
  std::vector<int> counts;
  for (const DomainId id : usable.fabric().DomainsAt(tier)) counts.push_back(usable.Count(id));
  std::sort(counts.rbegin(), counts.rend());
  int domains = 0;
  for (size_t i = 0; i < counts.size() && n > 0; ++i, ++domains) n -= counts[i];
  return domains;
}

double Gap(const TierBytes& traffic, const TierBytes& bound) {
  for (int s = kMaxTiers; s >= 0; --s) {
    if (traffic[s] != bound[s]) return bound[s] > 0 ? (traffic[s] - bound[s]) / bound[s] : traffic[s] > 0 ? 1 : 0;
  }
  return 0;
}

Placement::Busiest BusiestUplink(const Fabric& fabric, const SlotGraph& graph, absl::Span<const HostId> hosts) {
  absl::flat_hash_map<DomainId, double> up;
  Placement::Busiest busiest;
  busiest.domain = fabric.root();
  const auto consider = [&](DomainId domain, double bytes, double gbps) {
    const double seconds = bytes * 8 / (gbps * 1e9);
    if (seconds > busiest.seconds || (seconds == busiest.seconds && seconds > 0 && domain < busiest.domain))
      busiest = {domain, bytes, seconds};
  };
  for (int slot = 0; slot < graph.slots(); ++slot) {
    double from_host = 0;
    for (const SlotEdge& edge : graph.edges(slot)) {
      from_host += edge.sent;
      const Tier common = fabric.CommonTier(hosts[slot], hosts[edge.to]);
      for (Tier t = 1; t < common; ++t) up[fabric.DomainOf(hosts[slot], t)] += edge.sent;
    }
    consider(fabric.DomainOf(hosts[slot], 1), from_host, fabric.host(hosts[slot]).nics.total_gbps());
  }
  for (const auto& [domain, bytes] : up) consider(domain, bytes, fabric.domain(domain).uplinks.total_gbps());
  return busiest;
}

std::string Reason(const Usable& usable, const GangRequest& request, const Placement& placement) {
  const Fabric& fabric = usable.fabric();
  Tier common = 0;
  for (const HostId host : placement.hosts) common = std::max(common, fabric.CommonTier(placement.hosts[0], host));
  const auto plural = [](int count, absl::string_view noun) { return absl::StrCat(count, " ", noun, count == 1 ? "" : "s"); };
  if (common == 0) return absl::StrCat("one host, in ", fabric.domain(fabric.DomainOf(placement.hosts[0], 1)).name);
  std::string text = absl::StrCat("all ", plural(request.slots, "host"), " in ", fabric.TierName(common), " ",
                                  fabric.domain(fabric.DomainOf(placement.hosts[0], common)).name);
  if (common == 1) return text;
  const Tier below = common - 1;
  const int fewest = FewestDomains(usable, below, request.slots);
  absl::StrAppend(&text, ", across ", plural(placement.domains[below], fabric.TierName(below)));
  if (placement.domains[below] == fewest) {
    absl::StrAppend(&text, ", the fewest that hold them");
  } else {
    absl::StrAppend(&text, "; ", fewest, " would do for the count alone");
  }
  if (!placement.proven_optimal()) absl::StrAppendFormat(&text, "; within %.1f %% of the bound", 100 * placement.gap);
  return text;
}

}  // namespace closeknit
