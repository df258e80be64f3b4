#include "scheduler/sim/fluid.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace closeknit {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(MaxMinFair, TextbookExample) {
  // Bertsekas & Gallager's picture: one long flow and short ones over links of different capacity.
  FlowProblem problem;
  problem.capacity_gbps = {1, 1, 2};
  problem.paths = {{0}, {0}, {0, 1}, {1}, {1, 2}, {2}};
  const std::vector<double> rates = MaxMinFairRates(problem);
  const double third = 1.0 / 3;
  EXPECT_THAT(rates, ElementsAre(DoubleNear(third, 1e-9), DoubleNear(third, 1e-9), DoubleNear(third, 1e-9), DoubleNear(third, 1e-9),
                                 DoubleNear(third, 1e-9), DoubleNear(5.0 / 3, 1e-9)));
}

TEST(MaxMinFair, EmptyPathIsUnlimited) {
  FlowProblem problem;
  problem.paths = {{}};
  EXPECT_TRUE(std::isinf(MaxMinFairRates(problem)[0]));
}

// The definition: no link is over its capacity, and every flow has a bottleneck: a full link on which no flow is faster.
TEST(MaxMinFair, EveryFlowHasABottleneck) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    FlowProblem problem;
    const int links = 1 + static_cast<int>(random() % 8);
    for (int i = 0; i < links; ++i) problem.capacity_gbps.push_back(1 + static_cast<double>(random() % 9));
    for (int flow = 0; flow < 12; ++flow) {
      std::vector<uint32_t> path;
      for (uint32_t link = 0; link < problem.capacity_gbps.size(); ++link) {
        if (random() % 3 == 0) path.push_back(link);
      }
      if (!path.empty()) problem.paths.push_back(path);
    }
    const std::vector<double> rates = MaxMinFairRates(problem);
    std::vector<double> load(problem.capacity_gbps.size()), fastest(problem.capacity_gbps.size());
    for (size_t flow = 0; flow < rates.size(); ++flow) {
      for (const uint32_t link : problem.paths[flow]) {
        load[link] += rates[flow];
        fastest[link] = std::max(fastest[link], rates[flow]);
      }
    }
    for (size_t flow = 0; flow < rates.size(); ++flow) {
      bool bottleneck = false;
      for (const uint32_t link : problem.paths[flow]) {
        EXPECT_LE(load[link], problem.capacity_gbps[link] + 1e-9);
        bottleneck |= load[link] > problem.capacity_gbps[link] - 1e-9 && rates[flow] > fastest[link] - 1e-9;
      }
      EXPECT_TRUE(bottleneck) << "round " << round << " flow " << flow;
    }
  }
}

// `racks` racks of `per_rack` hosts with 2 NICs of 400 Gbit/s; each rack has `uplinks` of 400 Gbit/s to the root.
Fabric TwoTiers(int racks, int per_rack, uint32_t uplinks) {
  FabricDescription description;
  FabricDescription::DomainEntry root{"root", {}, {}, {}};
  for (int rack = 0; rack < racks; ++rack) {
    FabricDescription::DomainEntry entry{absl::StrCat("r", rack), {}, {}, {uplinks, 400}};
    for (int h = 0; h < per_rack; ++h) {
      Host host;
      host.name = absl::StrCat("h", rack, "-", h);
      host.nics = {2, 400};
      entry.hosts.push_back(static_cast<int>(description.hosts.size()));
      description.hosts.push_back(host);
    }
    root.child_domains.push_back(static_cast<int>(description.domains.size()));
    description.domains.push_back(entry);
  }
  description.roots = {static_cast<int>(description.domains.size())};
  description.domains.push_back(root);
  return Fabric::Build(description).value();
}

std::vector<HostId> Hosts(std::initializer_list<uint32_t> numbers) {
  std::vector<HostId> hosts;
  for (const uint32_t number : numbers) hosts.push_back(HostId{number});
  return hosts;
}

TEST(RingEdge, ARingInsideARackRunsAtTheNics) {
  const Fabric fabric = TwoTiers(2, 4, 1);
  EXPECT_DOUBLE_EQ(*SlowestRingEdgeGbps(fabric, Hosts({0, 1, 2, 3}), {}), 800);
}

TEST(RingEdge, CrossingsShareTheUplink) {
  const Fabric fabric = TwoTiers(2, 4, 1);
  // In rack order one edge leaves each rack: 400 of 800. Alternating, four do: 100.
  EXPECT_DOUBLE_EQ(*SlowestRingEdgeGbps(fabric, Hosts({0, 1, 2, 3, 4, 5, 6, 7}), {}), 400);
  EXPECT_DOUBLE_EQ(*SlowestRingEdgeGbps(fabric, Hosts({0, 4, 1, 5, 2, 6, 3, 7}), {}), 100);
}

TEST(RingEdge, HashingIsNeverFasterThanOneBigLinkAndMoreFlowsSpreadBetter) {
  const Fabric fabric = TwoTiers(4, 8, 16);
  std::vector<HostId> hosts;  // one from each rack in turn: every edge leaves its rack
  for (uint32_t i = 0; i < 32; ++i) hosts.push_back(HostId{(i % 4) * 8 + i / 4});
  const double ideal = *SlowestRingEdgeGbps(fabric, hosts, {});
  double few = 0, many = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    AllGatherModel model;
    model.routing = Routing::kEcmp;
    model.seed = seed;
    few += *SlowestRingEdgeGbps(fabric, hosts, model) / 20;
    model.flows_per_rail = 32;
    many += *SlowestRingEdgeGbps(fabric, hosts, model) / 20;
  }
  EXPECT_LT(few, many);
  EXPECT_LE(many, ideal + 1e-6);
}

TEST(NormalisedBandwidth, LargeMessagesReachTheSlowestEdgeSmallOnesTheLatency) {
  EXPECT_NEAR(NormalisedBandwidth(800, 800, 16, 128, 1e13, absl::Microseconds(5)), 100, 0.01);
  EXPECT_NEAR(NormalisedBandwidth(200, 800, 16, 128, 1e13, absl::Microseconds(5)), 25, 0.01);
  EXPECT_LT(NormalisedBandwidth(800, 800, 16, 128, 1e6, absl::Microseconds(5)), 3);
}

TEST(RingEdge, AFabricWithoutCapacitiesIsRefused) {
  Fabric fabric = TwoTiers(2, 2, 0);
  EXPECT_EQ(SlowestRingEdgeGbps(fabric, Hosts({0, 1}), {}).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace closeknit
