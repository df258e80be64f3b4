#include "placement/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cluster_model/test_cluster.h"
#include "placement/baselines/baselines.h"
#include "placement/evaluate.h"
#include "placement/gpus.h"
#include "proto/base/host_list.h"

namespace closeknit {
namespace {

using ::testing::HasSubstr;

GangRequest Gang(int slots) {
  GangRequest request;
  request.slots = slots;
  return request;
}

std::vector<std::string> Names(const ClusterView& view, absl::Span<const HostId> hosts) {
  std::vector<std::string> names;
  for (const HostId host : hosts) names.push_back(view.fabric().host(host).name);
  return names;
}

// The hosts in slot order, folded; or the error.
std::string Where(const ClusterView& view, const GangRequest& request) {
  const absl::StatusOr<Placement> placement = Place(view, request);
  if (!placement.ok()) return std::string(placement.status().message());
  EXPECT_TRUE(placement->proven_optimal());
  const absl::StatusOr<TierBytes> evaluated = EvaluateTraffic(view.fabric(), request, placement->hosts);
  EXPECT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_EQ(*evaluated, placement->traffic) << "evaluator and search differ";
  return FoldHostList(Names(view, placement->hosts));
}

TEST(Place, GangOfARackTakesTheRackThatIsExactlyFree) {
  EXPECT_EQ(Where(Cluster("3 racks x 4 hosts").Busy("h[5-6]").Busy("h9"), Gang(2)), "h[7-8]");
}

TEST(Place, GangOfARackPrefersARackInUse) { EXPECT_EQ(Where(Cluster("3 racks x 4 hosts").Busy("h[5-6]").Busy("h9"), Gang(2)), "h[7-8]"); }

TEST(Place, SizesOfRacksAreNeverAssumedEqual) {
  Cluster cluster("1+1+2+3+5 | 8");
  EXPECT_EQ(Where(cluster, Gang(8)), "h[13-20]");
  EXPECT_EQ(Where(cluster, Gang(10)), "h[3-12]");  // racks of 2, 3 and 5: the fewest of one pod
}

TEST(Place, DoesNotDriftToTheRootWhileAPodHasRoom) {
  // Half of each rack of the first two pods is busy; the third has 4 free.
  Cluster cluster("3 pods x 2 racks x 2 hosts");
  cluster.Busy("h1,h3,h5,h7");
  EXPECT_EQ(Where(cluster, Gang(4)), "h[9-12]");
  EXPECT_EQ(Where(cluster, Gang(2)), "h[9-10]") << "a whole rack before two halves";
}

TEST(Place, OneHostJobsFillPartlyUsedRacksFirst) { EXPECT_EQ(Where(Cluster("2 pods x 2 racks x 2 hosts").Busy("h6"), Gang(1)), "h5"); }

TEST(Place, RanksFollowTheFabricNotTheAlphabet) {
  FabricDescription description;
  description.hosts = {{.name = "h1"}, {.name = "h2"}, {.name = "h3"}, {.name = "h4"}};
  description.domains = {{.name = "a", .hosts = {0, 2}}, {.name = "b", .hosts = {1, 3}}, {.name = "core", .child_domains = {0, 1}}};
  description.roots = {2};
  const absl::StatusOr<Fabric> fabric = Fabric::Build(description);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  const ClusterView view(std::make_shared<const Fabric>(*fabric));
  EXPECT_EQ(Where(view, Gang(4)), "h[1,3,2,4]");
}

TEST(Place, RequiredTierIsHardByNameOrNumber) {
  Cluster cluster("2 pods x 2 racks x 2 hosts");
  cluster.Busy("h1,h5");
  GangRequest request = Gang(4);
  request.required_tier = 2;
  const absl::Status status = Place(cluster, request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("needs 4 hosts with 8 free GPUs each in one pod; the freest, pod1, has 3 free: 1 allocated to job 1"));
  const std::optional<Unplaceable> why = GetUnplaceable(status);
  ASSERT_TRUE(why.has_value());
  EXPECT_EQ(why->fitting_slots, 3);
  EXPECT_EQ(why->fitting_domains, 2);
  EXPECT_THAT(why->nearest, HasSubstr("1 fewer host"));
}

TEST(Place, AGangThatCanNeverFitSaysSoWithNumbers) {
  const absl::Status status = Place(Cluster("2 racks x 2 hosts").Busy("h1"), Gang(5)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("needs 5 hosts with 8 GPUs each; the fabric has 4 such of 4 hosts"));
  GangRequest rack = Gang(3);
  rack.required_tier = 1;
  EXPECT_EQ(Place(Cluster("2 racks x 2 hosts"), rack).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Place, AllButOneDrainedWaitsWithThatReason) {
  const absl::Status status = Place(Cluster("2 racks x 2 hosts").Drained("h2"), Gang(4)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("3 of 4 can take them: 1 drained"));
}

TEST(Place, HostsThatAreDownDrainedReservedDegradedOrBusyAreNeverTaken) {
  Cluster cluster("2 racks x 4 hosts");
  cluster.Down("h1").Drained("h2").Reserved("h3").Busy("h4").RailsDown("h5").Missing("h6", GpuSet(1));
  EXPECT_EQ(Where(cluster, Gang(2)), "h[7-8]");
  GangRequest degraded = Gang(3);
  degraded.allow_degraded = true;
  EXPECT_EQ(Where(cluster, degraded), "h[5,7-8]");
}

TEST(Place, ExcludeNodelistFeaturesAndPartitionsAreHard) {
  Cluster cluster("2 racks x 3 hosts");
  GangRequest request = Gang(2);
  request.exclude = cluster.Hosts("h[1-2]");
  EXPECT_EQ(Where(cluster, request), "h[4-5]");
  request = Gang(2);
  request.nodelist = cluster.Hosts("h2,h6");
  EXPECT_EQ(Where(cluster, request), "h[2,6]");
  request = Gang(1);
  request.features = {"h200"};
  EXPECT_THAT(Where(cluster, request), HasSubstr("needs 1 host"));
  request = Gang(1);
  request.partition = "debug";
  EXPECT_THAT(Where(cluster, request), HasSubstr("needs 1 host"));
}

TEST(Place, MultipleOfTakesWholeRacksOnly) {
  Cluster cluster("4 racks x 2 hosts");
  cluster.Busy("h1,h3");
  GangRequest request = Gang(4);
  request.multiple_of = {{1, 2}};
  EXPECT_EQ(Where(cluster, request), "h[5-8]");
  request.slots = 6;
  EXPECT_THAT(Where(cluster, request), HasSubstr("a multiple of 2 hosts a rack"));
  request.slots = 3;
  EXPECT_EQ(Place(cluster, request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Place, MaxDomainsIsKeptWhereMoreOfAHigherTierMeetIt) {
  // pod1: racks with 1 free each; pods 2 and 3: one rack with 2 free each. One pod would do, with 4 racks; two pods do with 2 racks.
  Cluster built("2+2+2+2 | 2+2 | 2+2");
  built.Busy("h1,h3,h5,h7").Busy("h[11-12]").Busy("h[15-16]");
  EXPECT_EQ(Where(built, Gang(4)), "h[2,4,6,8]");
  GangRequest request = Gang(4);
  request.max_domains = {{1, 2}};
  EXPECT_EQ(Where(built, request), "h[9-10,13-14]");
  request.max_domains = {{1, 1}};
  EXPECT_THAT(Where(built, request), HasSubstr("in at most 1 rack"));
}

TEST(Place, SparesAreNearAndCountAgainstTheRequiredDomain) {
  Cluster cluster("2 pods x 2 racks x 3 hosts");
  GangRequest request = Gang(2);
  request.spares = 2;
  const absl::StatusOr<Placement> placement = Place(cluster, request);
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(FoldHostList(Names(cluster, placement->hosts)), "h[1-2]");
  EXPECT_EQ(FoldHostList(Names(cluster, placement->spares)), "h[3-4]") << "its rack, then its pod";
  request.required_tier = 1;
  EXPECT_THAT(std::string(Place(cluster, request).status().message()), HasSubstr("2 spares in one rack"));
}

TEST(Place, ASmallJobTakesTheHostThatIsUsedMost) {
  Cluster cluster("2 racks x 2 hosts");
  cluster.BusyGpus("h2", 4).BusyGpus("h4", 6);
  GangRequest request = Gang(1);
  request.gpus_per_slot = request.ranks_per_slot = 2;
  EXPECT_EQ(Where(cluster, request), "h4");
  request.gpus_per_slot = request.ranks_per_slot = 4;
  EXPECT_EQ(Where(cluster, request), "h2");
  request.gpus_per_slot = request.ranks_per_slot = 5;
  EXPECT_EQ(Where(cluster, request), "h1") << "in the first of two equal racks";
}

TEST(Place, AJobWithoutGpusSharesAHost) {
  Cluster cluster("1 racks x 2 hosts");
  cluster.Busy("h[1-2]");
  GangRequest request = Gang(2);
  request.gpus_per_slot = 0;
  request.ranks_per_slot = 1;
  EXPECT_EQ(Where(cluster, request), "h[1-2]");
}

TEST(ChooseGpus, KeepsPairsAndHalvesWhole) {
  EXPECT_EQ(ChooseGpus(GpuSet(0b11111111), 2), GpuSet(0b00000011));
  EXPECT_EQ(ChooseGpus(GpuSet(0b11110001), 1), GpuSet(0b00000001)) << "the pair that is broken already";
  EXPECT_EQ(ChooseGpus(GpuSet(0b11110111), 3), GpuSet(0b00000111)) << "the half that is broken already";
  EXPECT_EQ(ChooseGpus(GpuSet(0b11110110), 4), GpuSet(0b11110000));
  EXPECT_EQ(ChooseGpus(GpuSet(0b01010101), 3), GpuSet(0b00010101));
  EXPECT_EQ(ChooseGpus(GpuSet(0b1), 0), GpuSet());
}

// Llama 3 405B (arXiv:2407.21783): tp8 pp16 dp128 on 2,048 hosts, pods of 384.
GangRequest Llama() {
  GangRequest request = Gang(2048);
  request.dimensions = {{.name = "tp", .degree = 8, .bytes = 236.76e9},
                        {.name = "pp", .degree = 16, .bytes = 0.5369e9, .pattern = Pattern::kChain},
                        {.name = "dp", .degree = 128, .bytes = 18.836e9}};
  return request;
}

TEST(EvaluateTraffic, Llama3WithWholeReplicasInAPodCostsWhatItsPaperImplies) {
  const Cluster cluster("8 pods x 192 racks x 2 hosts");
  std::vector<HostId> hosts;
  for (uint32_t h = 0; h < 2048; ++h) hosts.push_back(HostId{h});
  const absl::StatusOr<TierBytes> traffic = EvaluateTraffic(cluster.fabric(), Llama(), hosts);
  ASSERT_TRUE(traffic.ok());
  EXPECT_NEAR((*traffic)[2], 14.47e12, 0.005e12);  // 128 rings * 6 edges * 18.836 GB
}

TEST(Place, Llama3CutsChainsRatherThanRings) {
  // Chains carry 35 times less than rings: with each stage's ring in as few pods as can be, less than half of the above climbs.
  const Cluster cluster("8 pods x 192 racks x 2 hosts");
  const absl::StatusOr<Placement> placement = Place(cluster, Llama());
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_LT(placement->traffic[2], 14.47e12 / 2);
  EXPECT_EQ(placement->domains[2], 6);
  EXPECT_LE(placement->lower_bound[2], placement->traffic[2]);
  EXPECT_LT(placement->gap, 1);
  const absl::StatusOr<TierBytes> evaluated = EvaluateTraffic(cluster.fabric(), Llama(), placement->hosts);
  ASSERT_TRUE(evaluated.ok());
  for (int s = 0; s < 3; ++s) EXPECT_NEAR((*evaluated)[s], placement->traffic[s], 1e-9 * placement->traffic[s]);
}

TEST(EvaluateTraffic, ReplicasDealtToPodsAtRandomCostEighteenTimesAsMuch) {
  const Cluster cluster("6 pods x 192 racks x 2 hosts");
  std::vector<int> replicas(128);
  for (int i = 0; i < 128; ++i) replicas[i] = i;
  std::mt19937 random(1);
  std::shuffle(replicas.begin(), replicas.end(), random);
  std::vector<HostId> hosts(2048, HostId{0});
  for (int place = 0; place < 128; ++place) {
    for (uint32_t stage = 0; stage < 16; ++stage) hosts[replicas[place] * 16 + stage] = HostId{static_cast<uint32_t>(place) * 16 + stage};
  }
  const absl::StatusOr<TierBytes> traffic = EvaluateTraffic(cluster.fabric(), Llama(), hosts);
  ASSERT_TRUE(traffic.ok());
  EXPECT_NEAR((*traffic)[2], 258e12, 8e12);
}

TEST(Place, StageMajorWhereTheReplicasTrafficIsSmall) {
  // Two racks of two hosts; two replicas of two stages. Rings are dear, chains cheap: each ring in its own rack.
  GangRequest request = Gang(4);
  request.ranks_per_slot = request.gpus_per_slot = 8;
  request.dimensions = {{.name = "tp", .degree = 8},
                        {.name = "pp", .degree = 2, .bytes = 1, .pattern = Pattern::kChain},
                        {.name = "dp", .degree = 2, .bytes = 100}};
  const Cluster cluster("2 racks x 2 hosts");
  const absl::StatusOr<Placement> placement = Place(cluster, request);
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(FoldHostList(Names(cluster, placement->hosts)), "h[1,3,2,4]");
  EXPECT_TRUE(placement->proven_optimal());
}

TEST(Place, IsAsGoodAsEveryBaselineOnEveryOccupancy) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Cluster cluster("3 pods x 4 racks x 4 hosts");
    int free = 0;
    for (int h = 1; h <= 48; ++h) {
      if (random() % 100 < 50) {
        cluster.Busy(absl::StrCat("h", h));
      } else {
        ++free;
      }
    }
    if (free < 2) continue;
    const GangRequest request = Gang(1 + static_cast<int>(random() % static_cast<unsigned>(free)));
    const absl::StatusOr<Placement> placement = Place(cluster, request);
    ASSERT_TRUE(placement.ok()) << placement.status();
    for (const Baseline& baseline : AllBaselines()) {
      const HostsInRankOrder hosts = baseline.place(cluster, request.slots);
      if (!hosts.has_value()) continue;
      const TierBytes other = *EvaluateTraffic(cluster.fabric(), request, *hosts);
      for (int s = kMaxTiers; s >= 0; --s) {
        if (placement->traffic[s] == other[s]) continue;
        EXPECT_LT(placement->traffic[s], other[s]) << baseline.name << " beats the optimum";
        break;
      }
    }
  }
}

TEST(Place, IsTheSameEachTime) {
  Cluster cluster("3 pods x 4 racks x 4 hosts");
  cluster.Busy("h[3-20]");
  EXPECT_EQ(Where(cluster, Gang(9)), Where(cluster, Gang(9)));
}

}  // namespace
}  // namespace closeknit
