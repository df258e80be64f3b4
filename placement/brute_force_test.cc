// The search against enumeration on small trees: traffic, and the ties after it, are those of the best host set of all.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cluster_model/test_cluster.h"
#include "placement/evaluate.h"
#include "placement/place.h"
#include "proto/base/host_list.h"

namespace closeknit {
namespace {

// Random trees of 2 to 4 tiers with unequal domains.
std::shared_ptr<const Fabric> RandomFabric(std::mt19937* random, int max_hosts) {
  FabricDescription description;
  const int tiers = 2 + static_cast<int>((*random)() % 3);
  std::vector<int> level;  // domains without a parent yet
  while (static_cast<int>(description.hosts.size()) < max_hosts) {
    FabricDescription::DomainEntry rack = {.name = absl::StrCat("d", description.domains.size())};
    for (int left = 1 + static_cast<int>((*random)() % 3); left > 0 && static_cast<int>(description.hosts.size()) < max_hosts; --left) {
      rack.hosts.push_back(static_cast<int>(description.hosts.size()));
      description.hosts.push_back({.name = absl::StrCat("h", description.hosts.size())});
    }
    level.push_back(static_cast<int>(description.domains.size()));
    description.domains.push_back(std::move(rack));
  }
  for (int tier = 2; tier <= tiers; ++tier) {
    std::vector<int> above;
    for (size_t i = 0; i < level.size();) {
      FabricDescription::DomainEntry domain = {.name = absl::StrCat("d", description.domains.size())};
      const size_t many = tier == tiers ? level.size() : 1 + (*random)() % 3;
      for (size_t k = 0; k < many && i < level.size(); ++k) domain.child_domains.push_back(level[i++]);
      above.push_back(static_cast<int>(description.domains.size()));
      description.domains.push_back(std::move(domain));
    }
    level = above;
  }
  description.roots = level;
  absl::StatusOr<Fabric> fabric = Fabric::Build(description);
  CHECK_OK(fabric.status());
  return std::make_shared<const Fabric>(*std::move(fabric));
}

// The whole cost of a host set in fabric order: traffic from the top down, then broken domains from the top down, then leftovers from tier
// 1 up.
std::vector<int> CostOf(const ClusterView& view, const std::vector<HostId>& hosts) {
  const Fabric& fabric = view.fabric();
  std::vector<int> touched, broken, leftover;
  for (Tier t = fabric.top(); t >= 1; --t) {
    int domains = 0, whole = 0, left = 0;
    for (const DomainId id : fabric.DomainsAt(t)) {
      const Domain& domain = fabric.domain(id);
      const int used = static_cast<int>(
          std::count_if(hosts.begin(), hosts.end(), [&](HostId h) { return h >= domain.first_host && h < domain.end_host; }));
      if (used == 0) continue;
      ++domains;
      whole += view.counts(id).whole_free == domain.host_count() ? 1 : 0;
      left += view.counts(id).whole_free - used;
    }
    touched.push_back(domains);
    broken.push_back(whole);
    leftover.push_back(left);
  }
  std::reverse(leftover.begin(), leftover.end());
  std::vector<int> cost = touched;
  cost.insert(cost.end(), broken.begin(), broken.end());
  cost.insert(cost.end(), leftover.begin(), leftover.end());
  return cost;
}

struct Limits {
  Tier multiple_tier = 0;
  int multiple = 1;
  Tier max_tier = 0;
  int max = 0;
  Tier required = 0;
};

bool Keeps(const Fabric& fabric, const std::vector<HostId>& hosts, const Limits& limits) {
  for (Tier t = 1; t <= fabric.top(); ++t) {
    int domains = 0;
    for (const DomainId id : fabric.DomainsAt(t)) {
      const Domain& domain = fabric.domain(id);
      const auto used = std::count_if(hosts.begin(), hosts.end(), [&](HostId h) { return h >= domain.first_host && h < domain.end_host; });
      if (used == 0) continue;
      ++domains;
      if (t == limits.multiple_tier && used % limits.multiple != 0) return false;
    }
    if (t == limits.max_tier && domains > limits.max) return false;
    if (t == limits.required && domains > 1) return false;
  }
  return true;
}

// The least cost over all sets of n free hosts; empty: there is none.
std::vector<int> Best(const ClusterView& view, int n, const Limits& limits) {
  std::vector<HostId> free;
  for (uint32_t h = 0; h < view.fabric().hosts().size(); ++h) {
    if (view.WholeFree(HostId{h})) free.push_back(HostId{h});
  }
  std::vector<int> best;
  for (uint32_t set = 0; set < (1u << free.size()); ++set) {
    if (std::popcount(set) != n) continue;
    std::vector<HostId> hosts;
    for (size_t i = 0; i < free.size(); ++i) {
      if (set >> i & 1) hosts.push_back(free[i]);
    }
    if (!Keeps(view.fabric(), hosts, limits)) continue;
    std::vector<int> cost = CostOf(view, hosts);
    if (best.empty() || cost < best) best = std::move(cost);
  }
  return best;
}

void Compare(std::mt19937* random, bool with_limits) {
  ClusterView view(RandomFabric(random, 4 + static_cast<int>((*random)() % 9)));
  const Fabric& fabric = view.fabric();
  for (uint32_t h = 0; h < fabric.hosts().size(); ++h) {
    if ((*random)() % 3 == 0) CHECK_OK(view.Allocate(HostId{h}, {.job = 1, .attempt = 1, .gpus = GpuSet::First(8)}));
  }
  GangRequest request;
  request.slots = 1 + static_cast<int>((*random)() % 7);
  Limits limits;
  if (with_limits) {
    switch ((*random)() % 3) {
      case 0:
        limits.multiple_tier = 1 + static_cast<int>((*random)() % fabric.top());
        limits.multiple = 2;
        request.slots += request.slots % 2;
        request.multiple_of = {{limits.multiple_tier, 2}};
        break;
      case 1:
        // Exact for the two tiers below the scope's.
        limits.max_tier = std::max(1, fabric.top() - 1 - static_cast<int>((*random)() % 2));
        limits.max = 1 + static_cast<int>((*random)() % 3);
        request.max_domains = {{limits.max_tier, limits.max}};
        break;
      default:
        limits.required = 1 + static_cast<int>((*random)() % fabric.top());
        request.required_tier = limits.required;
        break;
    }
  }
  const std::vector<int> best = Best(view, request.slots, limits);
  const absl::StatusOr<Placement> placement = Place(view, request);
  if (best.empty()) {
    EXPECT_FALSE(placement.ok());
    return;
  }
  ASSERT_TRUE(placement.ok()) << placement.status() << ", yet " << absl::StrJoin(best, ",");
  EXPECT_TRUE(Keeps(fabric, placement->hosts, limits));
  const std::vector<int> found = CostOf(view, placement->hosts);
  // Of a limited number of domains the traffic is the least; ties may be settled otherwise.
  const size_t compared = limits.max_tier != 0 ? static_cast<size_t>(fabric.top()) : best.size();
  EXPECT_EQ(std::vector<int>(found.begin(), found.begin() + compared), std::vector<int>(best.begin(), best.begin() + compared))
      << request.slots << " hosts, " << fabric.top() << " tiers";
  EXPECT_EQ(*EvaluateTraffic(fabric, request, placement->hosts), placement->traffic);
}

TEST(BruteForce, RingsAreAtTheOptimumWithAllTies) {
  std::mt19937 random(1);
  for (int i = 0; i < 1'500 && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    Compare(&random, /*with_limits=*/false);
  }
}

TEST(BruteForce, RingsWithLimitsAreAtTheOptimum) {
  std::mt19937 random(2);
  for (int i = 0; i < 1'500 && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    Compare(&random, /*with_limits=*/true);
  }
}

// Every order of every host set: no ring over them costs less than what was found, and no grid less than the bound that was told.
TEST(BruteForce, NoOrderBeatsTheSearchNorItsBound) {
  std::mt19937 random(3);
  int proven = 0, met = 0, grids = 0;
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    const ClusterView view(RandomFabric(&random, 6));
    GangRequest request;
    request.slots = 4;
    request.ranks_per_slot = request.gpus_per_slot = 8;
    const bool ring = i % 2 == 0;
    if (!ring) {
      request.dimensions = {{.name = "tp", .degree = 8},
                            {.name = "pp", .degree = 2, .bytes = 1.0 + random() % 5, .pattern = Pattern::kChain},
                            {.name = "dp", .degree = 2, .bytes = 1.0 + random() % 5}};
    }
    const absl::StatusOr<Placement> placement = Place(view, request);
    ASSERT_TRUE(placement.ok()) << placement.status();
    std::vector<HostId> hosts;
    for (uint32_t h = 0; h < view.fabric().hosts().size(); ++h) hosts.push_back(HostId{h});
    TierBytes least = placement->traffic;
    const auto reversed = [](const TierBytes& t) { return std::vector<double>(t.rbegin(), t.rend()); };
    do {
      const TierBytes traffic = *EvaluateTraffic(view.fabric(), request, absl::MakeConstSpan(hosts).subspan(0, 4));
      if (reversed(traffic) < reversed(least)) least = traffic;
      for (size_t s = 0; s < traffic.size(); ++s) EXPECT_GE(traffic[s], placement->lower_bound[s] * (1 - 1e-9)) << "the bound is none";
    } while (std::next_permutation(hosts.begin(), hosts.end()));
    if (ring) {
      EXPECT_EQ(least, placement->traffic);
      continue;
    }
    ++grids;
    met += least == placement->traffic ? 1 : 0;
    proven += placement->proven_optimal() ? 1 : 0;
    if (placement->proven_optimal()) {
      EXPECT_EQ(least, placement->traffic);
    }
  }
  EXPECT_GE(met, grids * 9 / 10) << "of small grids nearly all are at the optimum";
  EXPECT_GE(proven, grids / 4);
}

}  // namespace
}  // namespace closeknit
