#include "placement/baselines/baselines.h"

#include <set>

#include "cluster_model/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/host_list.h"

namespace closeknit {
namespace {

std::string Names(const ClusterView& view, const HostsInRankOrder& hosts) {
  if (!hosts) return "none";
  std::vector<std::string> names;
  for (const HostId host : *hosts) names.push_back(view.fabric().host(host).name);
  return FoldHostList(names);
}

TEST(Baselines, AllTakeDistinctFreeHostsOrNone) {
  Cluster cluster("3 pods x 4 racks x 3 hosts");
  cluster.Busy("h[2,5-7,20]");
  for (const Baseline& baseline : AllBaselines()) {
    for (int slots = 1; slots <= 36; ++slots) {
      const HostsInRankOrder hosts = baseline.place(cluster.view(), slots);
      ASSERT_EQ(hosts.has_value(), slots <= 31) << baseline.name << " " << slots;
      if (!hosts) continue;
      EXPECT_EQ(static_cast<int>(hosts->size()), slots) << baseline.name;
      EXPECT_EQ(std::set<HostId>(hosts->begin(), hosts->end()).size(), hosts->size()) << baseline.name;
      for (const HostId host : *hosts) EXPECT_TRUE(cluster.view().WholeFree(host)) << baseline.name;
    }
  }
}

TEST(Baselines, FirstFitFollowsNames) {
  Cluster cluster("2 pods x 2 racks x 3 hosts");
  cluster.Busy("h2");
  EXPECT_EQ(Names(cluster.view(), PlaceFirstFit(cluster.view(), 5)), "h[1,3-6]");
}

TEST(Baselines, SlurmTreeTakesTheSmallestLeafThatSuffices) {
  Cluster cluster("1 pods x 3 racks x 4 hosts");
  cluster.Busy("h[1,5-6]");  // free: 3, 2, 4
  EXPECT_EQ(Names(cluster.view(), PlaceSlurmTree(cluster.view(), 2)), "h[7-8]");
  EXPECT_EQ(Names(cluster.view(), PlaceSlurmTree(cluster.view(), 3)), "h[2-4]");
  // 6 = the freest leaf's 4, then the smallest leaf that has the other 2.
  EXPECT_EQ(Names(cluster.view(), PlaceSlurmTree(cluster.view(), 6)), "h[7-12]");
}

TEST(Baselines, SlurmBlockAggregatesByPowersOfTwo) {
  Cluster cluster("4 pods x 1 racks x 4 hosts");
  cluster.Busy("h[1,5-6,9]");  // free by pod: 3, 2, 3, 4
  // No pod has 6; pods 1+2 have 5, pods 3+4 have 7.
  EXPECT_EQ(Names(cluster.view(), PlaceSlurmBlock(cluster.view(), 6, 2)), "h[10-11,13-16]");
}

TEST(Baselines, KueueGoesDownByFreeCapacityAndNumbersInDomainOrder) {
  Cluster cluster("2 pods x 2 racks x 4 hosts");
  cluster.Busy("h[1,5,9-10]");  // free: pod 1 has 3 + 3, pod 2 has 2 + 4
  EXPECT_EQ(Names(cluster.view(), PlaceKueueBestFit(cluster.view(), 5)), "h[2-4,6-7]");
  EXPECT_EQ(Names(cluster.view(), PlaceKueueBestFit(cluster.view(), 2)), "h[11-12]");
}

TEST(Baselines, VolcanoPrefersTheFullestHyperNodeThatFits) {
  Cluster cluster("3 pods x 1 racks x 4 hosts");
  cluster.Busy("h[5-6,9]");  // free: 4, 2, 3
  EXPECT_EQ(Names(cluster.view(), PlaceVolcanoHyperNode(cluster.view(), 2)), "h[7-8]");
  EXPECT_EQ(Names(cluster.view(), PlaceVolcanoHyperNode(cluster.view(), 3)), "h[10-12]");
  EXPECT_EQ(Names(cluster.view(), PlaceVolcanoHyperNode(cluster.view(), 6)), "h[1-4,7-8]");
}

}  // namespace
}  // namespace closeknit
