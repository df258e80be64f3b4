#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster_model/test_cluster.h"
#include "placement/evaluate.h"
#include "placement/place.h"
#include "proto/base/host_list.h"

namespace closeknit {
namespace {

using ::testing::HasSubstr;

GangRequest Gang(int slots) {
  GangRequest request;
  request.slots = slots;
  return request;
}

std::string After(const Cluster& cluster, const GangRequest& request, const std::vector<HostId>& hosts, const std::vector<int>& failed) {
  const absl::StatusOr<Placement> placement = Replace(cluster, request, hosts, failed);
  if (!placement.ok()) return std::string(placement.status().message());
  EXPECT_EQ(*EvaluateTraffic(cluster.fabric(), request, placement->hosts), placement->traffic);
  std::vector<std::string> names;
  for (const HostId host : placement->hosts) names.push_back(cluster.fabric().host(host).name);
  return FoldHostList(names);
}

TEST(Replace, TakesTheThirdHostOfTheRackNotOneOfTheGang) {
  Cluster cluster("2 racks x 3 hosts");
  cluster.Busy("h[1-2]", 7);
  GangRequest request = Gang(2);
  request.required_tier = 1;
  EXPECT_EQ(After(cluster, request, cluster.Hosts("h[1-2]"), {0}), "h[3,2]");
}

TEST(Replace, ARequiredRackThatIsFullHasNoSubstitute) {
  Cluster cluster("2 racks x 3 hosts");
  cluster.Busy("h[1-2]", 7).Busy("h3", 8);
  GangRequest request = Gang(2);
  request.required_tier = 1;
  const absl::Status status = Replace(cluster, request, cluster.Hosts("h[1-2]"), {0}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no substitute for h1: 3 hosts are free, none in the gang's rack"));
}

TEST(Replace, KeepsSurvivorsInTheirSlotsAndGoesNearest) {
  Cluster cluster("2 pods x 2 racks x 3 hosts");
  cluster.Busy("h[1-5]", 7);
  EXPECT_EQ(After(cluster, Gang(5), cluster.Hosts("h[1-5]"), {1}), "h[1,6,3-5]") << "in its pod";
  cluster.Busy("h6", 8);
  EXPECT_EQ(After(cluster, Gang(5), cluster.Hosts("h[1-5]"), {1}), "h[1,7,3-5]") << "else the nearest other";
}

TEST(Replace, TheFailedHostItselfIsNeverChosenEvenIfItIsFree) {
  Cluster cluster("1 racks x 3 hosts");
  cluster.Busy("h[1,3]", 7);
  EXPECT_THAT(After(cluster, Gang(2), cluster.Hosts("h1,h2"), {1}), HasSubstr("no substitute"));
}

TEST(Replace, SeveralAtOnceStayTogether) {
  Cluster cluster("3 racks x 4 hosts");
  cluster.Busy("h[1-4]", 7).Busy("h5", 8);
  EXPECT_EQ(After(cluster, Gang(4), cluster.Hosts("h[1-4]"), {1, 2}), "h[1,6-7,4]");
}

TEST(Replace, MaxDomainsHolds) {
  Cluster cluster("3 racks x 2 hosts");
  cluster.Busy("h[1-4]", 7);
  GangRequest request = Gang(4);
  request.max_domains = {{1, 2}};
  EXPECT_THAT(After(cluster, request, cluster.Hosts("h[1-4]"), {0}), HasSubstr("none within the gang's limits"));
}

TEST(Replace, BadSlotsAreRefused) {
  Cluster cluster("1 racks x 3 hosts");
  EXPECT_EQ(Replace(cluster, Gang(2), cluster.Hosts("h[1-2]"), {2}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Replace(cluster, Gang(3), cluster.Hosts("h[1-2]"), {0}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace closeknit
