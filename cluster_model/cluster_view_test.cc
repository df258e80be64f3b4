#include "cluster_model/cluster_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/algorithm/container.h"
#include "cluster_model/test_cluster.h"

namespace closeknit {
namespace {

using ::testing::HasSubstr;

DomainCounts Counts(const Cluster& cluster, absl::string_view domain) {
  return cluster.view().counts(*cluster.fabric().FindDomain(domain));
}

TEST(ClusterView, EverythingIsFreeAtFirst) {
  const Cluster cluster("2 pods x 3 racks x 2 hosts");
  EXPECT_EQ(Counts(cluster, "rack1"), (DomainCounts{.whole_free = 2, .free_gpus = 16}));
  EXPECT_EQ(Counts(cluster, "pod2"), (DomainCounts{.whole_free = 6, .free_gpus = 48}));
  EXPECT_EQ(cluster.view().counts(cluster.fabric().root()), (DomainCounts{.whole_free = 12, .free_gpus = 96}));
}

TEST(ClusterView, CountsFollowEveryKindOfChange) {
  Cluster cluster("2 pods x 3 racks x 2 hosts");
  cluster.Busy("h1").BusyGpus("h2", 3, 2).Down("h3").Drained("h3,h4").RailsDown("h5").Missing("h6", GpuSet(1));
  EXPECT_EQ(Counts(cluster, "rack1"), (DomainCounts{.free_gpus = 5, .allocated_hosts = 2}));
  EXPECT_EQ(Counts(cluster, "rack2"), (DomainCounts{.down = 1, .drained = 2}));
  EXPECT_EQ(Counts(cluster, "rack3"), (DomainCounts{.whole_free_degraded = 1, .free_gpus = 15}));
  EXPECT_TRUE(cluster.view().WholeFree(cluster.Host("h5")));
  EXPECT_FALSE(cluster.view().WholeFree(cluster.Host("h6")));
  EXPECT_TRUE(cluster.view().CheckCounts().ok());
}

TEST(ClusterView, AGpuIsNeverGivenTwice) {
  Cluster cluster("2 hosts");
  const HostId h1 = cluster.Host("h1");
  ASSERT_TRUE(cluster.view().Allocate(h1, {.job = 7, .attempt = 1, .gpus = GpuSet(0b0011)}).ok());
  const absl::Status again = cluster.view().Allocate(h1, {.job = 8, .attempt = 2, .gpus = GpuSet(0b0110)});
  EXPECT_EQ(again.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(again.message()), HasSubstr("of h1 cannot go to job 8 attempt 2: job 7 attempt 1 holds it"));
  EXPECT_EQ(cluster.view().status(h1).allocated, GpuSet(0b0011));
  EXPECT_TRUE(cluster.view().Allocate(h1, {.job = 8, .attempt = 2, .gpus = GpuSet(0b1100)}).ok());
  EXPECT_TRUE(cluster.view().CheckCounts().ok());
}

TEST(ClusterView, AnExclusiveHostIsSharedWithNobody) {
  Cluster cluster("2 hosts");
  const HostId h1 = cluster.Host("h1"), h2 = cluster.Host("h2");
  const Allocation exclusive{.job = 1, .attempt = 1, .exclusive = true};
  ASSERT_TRUE(cluster.view().Allocate(h1, exclusive).ok());
  EXPECT_EQ(cluster.view().status(h1).free(), GpuSet());
  EXPECT_FALSE(cluster.view().Allocate(h1, {.job = 2, .attempt = 1, .gpus = GpuSet(1)}).ok());
  EXPECT_FALSE(cluster.view().Allocate(h1, {.job = 2, .attempt = 1}).ok());
  ASSERT_TRUE(cluster.view().Allocate(h2, {.job = 2, .attempt = 1}).ok());
  EXPECT_FALSE(cluster.view().Allocate(h2, exclusive).ok());
  EXPECT_TRUE(cluster.view().Release(h1, 1, 1));
  EXPECT_TRUE(cluster.view().WholeFree(h1));
}

TEST(ClusterView, ReleaseOfAnOldAttemptFreesNothingOfTheNext) {
  Cluster cluster("1 hosts");
  ASSERT_TRUE(cluster.view().Allocate(HostId{0}, {.job = 7, .attempt = 2, .gpus = GpuSet(0b1)}).ok());
  EXPECT_FALSE(cluster.view().Release(HostId{0}, 7, 1));
  EXPECT_EQ(cluster.view().allocations(HostId{0}).size(), 1u);
  EXPECT_TRUE(cluster.view().Release(HostId{0}, 7, 2));
  EXPECT_FALSE(cluster.view().Release(HostId{0}, 7, 2));
}

TEST(ClusterView, AGpuThatVanishesUnderAJobStaysTheJobs) {
  Cluster cluster("1 hosts");
  cluster.Busy("h1", 7).Missing("h1", GpuSet(0b1));
  EXPECT_TRUE(cluster.view().status(HostId{0}).allocated.Has(0));
  EXPECT_EQ(cluster.view().status(HostId{0}).free(), GpuSet());
  cluster.view().Release(HostId{0}, 7, 1);
  EXPECT_EQ(cluster.view().status(HostId{0}).free().size(), 7);
}

TEST(ClusterView, GpusBeyondTheDescriptionAreNotCounted) {
  Cluster cluster("1 racks x 1 hosts x 4 gpus");
  cluster.view().SetPresent(HostId{0}, GpuSet::First(8));
  EXPECT_EQ(cluster.view().status(HostId{0}).present, GpuSet::First(4));
  EXPECT_TRUE(cluster.view().WholeFree(HostId{0}));
}

TEST(ClusterView, VersionsGrowAboveAChangeOnly) {
  Cluster cluster("2 racks x 2 hosts");
  const auto version = [&](absl::string_view domain) { return cluster.view().version(*cluster.fabric().FindDomain(domain)); };
  const uint64_t rack1 = version("rack1"), rack2 = version("rack2"), root = version("test");
  cluster.Busy("h1");
  EXPECT_GT(version("rack1"), rack1);
  EXPECT_EQ(version("rack2"), rack2);
  EXPECT_GT(version("test"), root);
  const uint64_t after = version("test");
  cluster.view().SetRailsDown(HostId{0}, 0);
  EXPECT_FALSE(cluster.view().Release(HostId{3}, 9, 9));
  EXPECT_EQ(version("test"), after) << "nothing changed";
}

TEST(ClusterView, MovesToAnotherFabricByHostName) {
  Cluster before("2 racks x 2 hosts");
  before.Busy("h1", 7).Drained("h2").Missing("h3", GpuSet(0b10));
  Cluster after("1 rack x 8 hosts");
  const absl::StatusOr<ClusterView> moved = before.view().MovedTo(after.shared_fabric());
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_EQ(moved->allocations(after.Host("h1"))[0].job, 7u);
  EXPECT_EQ(moved->status(after.Host("h2")).unavailable, Unavailable::kDrained);
  EXPECT_EQ(moved->status(after.Host("h3")).present.size(), 7);
  EXPECT_TRUE(moved->WholeFree(after.Host("h8")));
  EXPECT_EQ(moved->counts(after.fabric().root()).whole_free, 5);
  EXPECT_TRUE(moved->CheckCounts().ok());
}

TEST(ClusterView, DoesNotMoveAwayFromHostsThatHoldWork) {
  Cluster before("2 racks x 3 hosts");
  before.Busy("h3,h4,h6");
  const Cluster after("2 hosts");
  const absl::Status refused = before.view().MovedTo(after.shared_fabric()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("h[3-4,6]"));
}

TEST(ClusterView, CountsEqualAWalkAfterAnyRunOfChanges) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
    Cluster cluster(seed % 2 == 0 ? "3 pods x 4 racks x 3 hosts" : "1+1+2+3+5 | 8 | 2+2");
    ClusterView& view = cluster.view();
    const auto hosts = static_cast<uint32_t>(cluster.fabric().hosts().size());
    for (int step = 0; step < 2000; ++step) {
      const HostId host{below(hosts)};
      switch (below(6)) {
        case 0:
        case 1: {
          const Allocation allocation{
              .job = below(9), .attempt = below(3), .gpus = GpuSet(random() & random() & 0xff), .exclusive = below(8) == 0};
          const bool fits = absl::c_none_of(view.allocations(host), [&](const Allocation& other) {
            return other.exclusive || allocation.exclusive || !(other.gpus & allocation.gpus).empty();
          });
          EXPECT_EQ(view.Allocate(host, allocation).ok(), fits);
          break;
        }
        case 2:
          view.Release(host, below(9), below(3));
          break;
        case 3:
          view.SetUnavailable(host, static_cast<Unavailable>(below(8)));
          break;
        case 4:
          view.SetPresent(host, below(2) == 0 ? GpuSet::First(8) : GpuSet(random() & 0xff));
          break;
        case 5:
          view.SetRailsDown(host, static_cast<int>(below(3)));
          break;
      }
      ASSERT_TRUE(view.CheckCounts().ok()) << "seed " << seed << " step " << step << ": " << view.CheckCounts();
    }
    const ClusterView copy = view;
    EXPECT_TRUE(copy.CheckCounts().ok());
    EXPECT_TRUE(view.MovedTo(cluster.shared_fabric())->CheckCounts().ok());
  }
}

}  // namespace
}  // namespace closeknit
