#include "cluster_model/fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster_model/test_cluster.h"

namespace closeknit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Entry = FabricDescription::DomainEntry;

Entry Leaf(std::string name, std::vector<int> hosts) { return {std::move(name), {}, std::move(hosts), {}}; }
Entry Above(std::string name, std::vector<int> children) { return {std::move(name), std::move(children), {}, {}}; }

FabricDescription Description(std::vector<std::string> host_names, std::vector<Entry> domains, std::vector<int> roots) {
  FabricDescription description;
  for (std::string& name : host_names) {
    description.hosts.emplace_back();
    description.hosts.back().name = std::move(name);
  }
  description.domains = std::move(domains);
  description.roots = std::move(roots);
  return description;
}

std::vector<std::string> DomainNames(const Fabric& fabric, Tier tier) {
  std::vector<std::string> names;
  for (const DomainId id : fabric.DomainsAt(tier)) names.push_back(fabric.domain(id).name);
  return names;
}

TEST(Fabric, NumbersHostsDepthFirstInTheOrderOfTheDescription) {
  // The pod lists rack b before rack a, and the hosts were described in another order again.
  const absl::StatusOr<Fabric> fabric =
      Fabric::Build(Description({"h4", "h1", "h3", "h2"}, {Leaf("a", {1, 2}), Leaf("b", {3, 0}), Above("p", {1, 0})}, {2}));
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  std::vector<std::string> names;
  for (const Host& host : fabric->hosts()) names.push_back(host.name);
  EXPECT_THAT(names, ElementsAre("h2", "h4", "h1", "h3"));
  EXPECT_EQ(fabric->top(), 2);
  EXPECT_EQ(fabric->TierNames(), "rack, pod");
  EXPECT_THAT(DomainNames(*fabric, 1), ElementsAre("b", "a"));
  const Domain& a = fabric->domain(*fabric->FindDomain("a"));
  EXPECT_EQ(a.first_host, HostId{2});
  EXPECT_EQ(a.end_host, HostId{4});
  EXPECT_EQ(fabric->host(HostId{2}).parent, *fabric->FindDomain("a"));
  EXPECT_EQ(fabric->total_gpus(), 32);
}

TEST(Fabric, CommonTierIsThatOfTheLowestSharedDomain) {
  const Cluster cluster("2 pods x 2 racks x 2 hosts");
  const Fabric& fabric = cluster.fabric();
  const auto common = [&](absl::string_view a, absl::string_view b) { return fabric.CommonTier(cluster.Host(a), cluster.Host(b)); };
  EXPECT_EQ(common("h1", "h1"), 0);
  EXPECT_EQ(common("h1", "h2"), 1);
  EXPECT_EQ(common("h1", "h3"), 2);
  EXPECT_EQ(common("h4", "h5"), 3);
  EXPECT_EQ(fabric.TierNames(), "rack, pod, core");
  EXPECT_EQ(fabric.DomainOf(cluster.Host("h5"), 2), *fabric.FindDomain("pod2"));
}

TEST(Fabric, FindsTiersByNameAndByNumber) {
  const Cluster cluster("2 pods x 3 racks x 2 hosts");
  EXPECT_EQ(cluster.fabric().FindTier("pod"), 2);
  EXPECT_EQ(cluster.fabric().FindTier("tier2"), 2);
  EXPECT_EQ(cluster.fabric().FindTier("core"), 3);
  EXPECT_EQ(cluster.fabric().FindTier("tier3"), 3);
  EXPECT_EQ(cluster.fabric().FindTier("tier4"), std::nullopt);
  EXPECT_EQ(cluster.fabric().FindTier("host"), std::nullopt);
  EXPECT_EQ(cluster.fabric().FindTier(""), std::nullopt);
  EXPECT_EQ(cluster.fabric().TierName(0), "host");
}

TEST(Fabric, OneSwitchIsAFabricOfOneTier) {
  const Cluster cluster("2 hosts");
  EXPECT_EQ(cluster.fabric().top(), 1);
  EXPECT_EQ(cluster.fabric().domain(cluster.fabric().root()).name, "rack1");
  EXPECT_EQ(cluster.fabric().CommonTier(HostId{0}, HostId{1}), 1);
}

TEST(Fabric, SeveralRootsAreJoined) {
  const absl::StatusOr<Fabric> fabric = Fabric::Build(Description({"h1", "h2"}, {Leaf("a", {0}), Leaf("b", {1})}, {0, 1}));
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  EXPECT_EQ(fabric->top(), 2);
  EXPECT_EQ(fabric->domain(fabric->root()).name, "fabric");
  EXPECT_EQ(fabric->domain(fabric->root()).host_count(), 2);
}

TEST(Fabric, ShortBranchesArePassedThrough) {
  // h1 below leaf a below pod p; h2 below leaf b, which hangs on the core directly; h3 on the core itself.
  FabricDescription description =
      Description({"h1", "h2", "h3"}, {Leaf("a", {0}), Above("p", {0}), Leaf("b", {1}), {"c", {1, 2}, {2}, {}}}, {3});
  description.domains[2].uplinks = {4, 400};
  description.hosts[2].nics = {8, 400};
  const absl::StatusOr<Fabric> fabric = Fabric::Build(description);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  EXPECT_EQ(fabric->top(), 3);
  EXPECT_THAT(DomainNames(*fabric, 2), ElementsAre("c@pod", "p", "b@pod"));
  EXPECT_THAT(DomainNames(*fabric, 1), ElementsAre("c@rack", "a", "b"));
  EXPECT_EQ(fabric->domain(*fabric->FindDomain("b@pod")).uplinks, (Uplinks{4, 400}));
  EXPECT_EQ(fabric->domain(*fabric->FindDomain("c@rack")).uplinks, (Uplinks{8, 400}));
  for (const HostId host : {HostId{0}, HostId{1}, HostId{2}}) EXPECT_EQ(fabric->DomainOf(host, 3), fabric->root());
}

TEST(Fabric, StatesCapacitiesOnlyIfEveryLinkBelowTheRootDoes) {
  FabricDescription description = Description({"h1", "h2"}, {Leaf("a", {0}), Leaf("b", {1}), Above("p", {0, 1})}, {2});
  for (Host& host : description.hosts) host.nics = {8, 400};
  description.domains[0].uplinks = {4, 400};
  EXPECT_FALSE(Fabric::Build(description)->StatesCapacities());
  description.domains[1].uplinks = {4, 400};
  EXPECT_TRUE(Fabric::Build(description)->StatesCapacities());
}

struct Wrong {
  const char* name;
  FabricDescription description;
  const char* message;
};

void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

FabricDescription With(FabricDescription description, void (*change)(FabricDescription*)) {
  change(&description);
  return description;
}

class FabricErrors : public ::testing::TestWithParam<Wrong> {};

TEST_P(FabricErrors, NameTheCulprit) {
  const absl::StatusOr<Fabric> fabric = Fabric::Build(GetParam().description);
  ASSERT_EQ(fabric.status().code(), absl::StatusCode::kInvalidArgument) << fabric.status();
  EXPECT_THAT(std::string(fabric.status().message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, FabricErrors,
    ::testing::Values(
        Wrong{"NoHost", Description({}, {}, {}), "no host"},
        Wrong{"DuplicateHost", Description({"h1", "h1"}, {Leaf("a", {0, 1})}, {0}), "host h1 is there twice"},
        Wrong{"DuplicateDomain", Description({"h1", "h2"}, {Leaf("a", {0}), Leaf("a", {1})}, {0, 1}), "domain a is there twice"},
        Wrong{"EmptyDomain", Description({"h1"}, {Leaf("a", {0}), Leaf("b", {})}, {0, 1}), "domain b holds no host"},
        Wrong{"HostWithoutDomain", Description({"h1", "h2"}, {Leaf("a", {0})}, {0}), "host h2 is below no domain"},
        Wrong{"HostWithTwo", Description({"h1"}, {Leaf("a", {0}), Leaf("b", {0})}, {0, 1}), "host h1 is below both a and b"},
        Wrong{"DomainWithTwo", Description({"h1"}, {Leaf("a", {0}), Above("p", {0}), Above("q", {0})}, {1, 2}),
              "domain a is below both p and q"},
        Wrong{"Orphan", Description({"h1", "h2"}, {Leaf("a", {0}), Leaf("b", {1}), Above("q", {1})}, {0}), "domain q is below no other"},
        Wrong{"Cycle", Description({"h1", "h2"}, {Leaf("a", {0}), Above("p", {2, 3}), Above("q", {1}), Leaf("b", {1})}, {0}),
              "is below itself: "},
        Wrong{"OwnParent", Description({"h1", "h2"}, {Leaf("a", {0}), {"p", {1}, {1}, {}}}, {0}), "domain p is below itself: p > p"},
        Wrong{"RootBelow", Description({"h1"}, {Leaf("a", {0}), Above("p", {0})}, {1, 0}), "root a is below domain p"},
        Wrong{"SevenTiers",
              Description({"h1"},
                          {Leaf("a", {0}), Above("b", {0}), Above("c", {1}), Above("d", {2}), Above("e", {3}), Above("f", {4}),
                           Above("g", {5})},
                          {6}),
              "more than 5 tiers below it"},
        Wrong{"NoGpu", With(Description({"h1"}, {Leaf("a", {0})}, {0}), [](FabricDescription* d) { d->hosts[0].gpus = 0; }),
              "host h1 has 0 GPUs; 1..64"},
        Wrong{"ManyGpus", With(Description({"h1"}, {Leaf("a", {0})}, {0}), [](FabricDescription* d) { d->hosts[0].gpus = 65; }),
              "host h1 has 65 GPUs"},
        Wrong{"TierNames",
              With(Description({"h1"}, {Leaf("a", {0})}, {0}),
                   [](FabricDescription* d) {
                     d->tier_names = {"rack", "pod"};
                   }),
              "but the fabric has 1 tiers"},
        Wrong{"TierTwice",
              With(Description({"h1"}, {Leaf("a", {0}), Above("p", {0})}, {1}),
                   [](FabricDescription* d) {
                     d->tier_names = {"rack", "rack"};
                   }),
              "tier name 'rack' is taken"},
        Wrong{"TierHost", With(Description({"h1"}, {Leaf("a", {0})}, {0}), [](FabricDescription* d) { d->tier_names = {"host"}; }),
              "tier name 'host' is taken"},
        Wrong{"TierNumber", With(Description({"h1"}, {Leaf("a", {0})}, {0}), [](FabricDescription* d) { d->tier_names = {"tier3"}; }),
              "that means tier 3"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace closeknit
