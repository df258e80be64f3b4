#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "cluster_model/readers.h"
#include "proto/base/host_list.h"

namespace closeknit {
namespace {

using ::testing::ElementsAre;

Fabric Read(absl::string_view contents) {
  absl::StatusOr<Fabric> fabric = ReadFabric(contents, "f.yaml", FabricFormat::kYaml);
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  return *std::move(fabric);
}

// "rack1: h[1-2]; rack2: ..." of one tier.
std::string Show(const Fabric& fabric, Tier tier) {
  std::string text;
  for (const DomainId id : fabric.DomainsAt(tier)) {
    const Domain& domain = fabric.domain(id);
    std::vector<std::string> hosts;
    for (uint32_t h = domain.first_host.value; h < domain.end_host.value; ++h) hosts.push_back(fabric.host(HostId{h}).name);
    absl::StrAppend(&text, text.empty() ? "" : "; ", domain.name, ": ", FoldHostList(hosts));
  }
  return text;
}

TEST(CloseknitYaml, ALabIsThreeLines) {
  const Fabric fabric = Read("name: lab\nfabric:\n  - {rack: bench, host: \"host[1-2]\", gpus: 2}\n");
  EXPECT_EQ(fabric.name(), "lab");
  EXPECT_EQ(fabric.TierNames(), "rack");
  EXPECT_EQ(Show(fabric, 1), "bench: host[1-2]");
  EXPECT_EQ(fabric.total_gpus(), 4);
  EXPECT_FALSE(fabric.StatesCapacities());
}

TEST(CloseknitYaml, APlaceholderGivesEachDomainAListOfItsOwn) {
  const Fabric fabric = Read("fabric:\n  - {pod: \"p[1-2]\", rack: \"{pod}r[01-02]\", host: \"{rack}h[1-2]\"}\n");
  EXPECT_EQ(fabric.TierNames(), "rack, pod, core");
  EXPECT_EQ(Show(fabric, 1), "p1r01: p1r01h[1-2]; p1r02: p1r02h[1-2]; p2r01: p2r01h[1-2]; p2r02: p2r02h[1-2]");
  EXPECT_EQ(Show(fabric, 2), "p1: p1r01h[1-2],p1r02h[1-2]; p2: p2r01h[1-2],p2r02h[1-2]");
}

TEST(CloseknitYaml, NamesWithoutPlaceholderAreDealtEvenly) {
  const Fabric fabric = Read("fabric:\n  - {pod: \"p[1-2]\", rack: \"r[1-4]\", host: \"h[01-12]\"}\n");
  EXPECT_EQ(Show(fabric, 1), "r1: h[01-03]; r2: h[04-06]; r3: h[07-09]; r4: h[10-12]");
  EXPECT_EQ(Show(fabric, 2), "p1: h[01-06]; p2: h[07-12]");
}

TEST(CloseknitYaml, APlaceholderOfAHigherTierDealsWithinIt) {
  const Fabric fabric = Read("fabric:\n  - {pod: \"p[1-2]\", rack: \"{pod}-a,{pod}-b\", host: \"n{pod#}-[1-4]\"}\n");
  EXPECT_EQ(Show(fabric, 1), "p1-a: n1-[1-2]; p1-b: n1-[3-4]; p2-a: n2-[1-2]; p2-b: n2-[3-4]");
}

TEST(CloseknitYaml, RacksMayBeUnequalAndFilledByPieces) {
  const Fabric fabric = Read(R"(
fabric:
  - {pod: a, rack: a1, host: "h[1-3]"}
  - {pod: b, rack: b1, host: "h[4-8]"}
  - {pod: a, rack: a2, host: h9}
  - {pod: a, rack: a1, host: h10, features: [big]}
)");
  EXPECT_EQ(Show(fabric, 1), "a1: h[1-3,10]; a2: h9; b1: h[4-8]");
  EXPECT_THAT(fabric.host(*fabric.FindHost("h10")).features, ElementsAre("big"));
}

TEST(CloseknitYaml, StatesCapacitiesOfTiersAndOfSingleDomains) {
  const Fabric fabric = Read(R"(
tiers:
  - {name: rack, uplinks: 16x400}
  - {name: pod, uplinks: 439x400}
  - {name: core}
hosts: {gpus: 8, nics: 8x400}
fabric:
  - {pod: "p[1-2]", rack: "{pod}r1", host: "{rack}h[1-2]"}
  - {pod: p3, rack: p3r1, host: p3h1, uplinks: {rack: 8x25.78}, nics: 2x200, rails: 1}
)");
  EXPECT_TRUE(fabric.StatesCapacities());
  EXPECT_EQ(fabric.domain(*fabric.FindDomain("p1r1")).uplinks, (Uplinks{16, 400}));
  EXPECT_EQ(fabric.domain(*fabric.FindDomain("p3r1")).uplinks, (Uplinks{8, 25.78}));
  EXPECT_EQ(fabric.domain(*fabric.FindDomain("p3")).uplinks, (Uplinks{439, 400}));
  EXPECT_EQ(fabric.domain(fabric.root()).name, "core");
  EXPECT_EQ(fabric.host(*fabric.FindHost("p1r1h1")).rails, 8) << "one a NIC";
  EXPECT_EQ(fabric.host(*fabric.FindHost("p3h1")).nics, (Uplinks{2, 200}));
  EXPECT_EQ(fabric.host(*fabric.FindHost("p3h1")).rails, 1);
}

TEST(CloseknitYaml, TiersMayHaveAnyNamesAndTheRootOneOfItsOwn) {
  const Fabric fabric = Read(R"(
tiers: [{name: su}, {name: spine}, {name: hall}, {name: campus}]
fabric:
  - {campus: north, hall: h1, spine: s1, su: u1, host: "n[1-2]"}
  - {campus: north, hall: h2, spine: s2, su: u2, host: "n[3-4]"}
)");
  EXPECT_EQ(fabric.TierNames(), "su, spine, hall, campus");
  EXPECT_EQ(Show(fabric, 4), "north: n[1-4]");
  EXPECT_EQ(fabric.FindTier("hall"), 3);
}

TEST(CloseknitYaml, OneTierNeedsNoDomainName) {
  const Fabric fabric = Read("tiers: [{name: switch}]\nfabric:\n  - {host: \"h[1-2]\"}\n  - {host: \"g[1-2]\", gpus: 1}\n");
  EXPECT_EQ(Show(fabric, 1), "switch: h[1-2],g[1-2]");
}

TEST(CloseknitYaml, TheNearestWordOnAHostWins) {
  const Fabric fabric = Read(R"(
hosts: {gpus: 4, features: [a100], partitions: [train, debug]}
fabric:
  - {rack: r1, host: "h[1-3]"}
  - {rack: r2, host: "h[4-5]", gpus: 8, features: h100}
overrides:
  - {hosts: "h[2,5]", features: [test, ib], partitions: []}
  - {hosts: h5, gpus: 7}
)");
  const auto host = [&](absl::string_view name) { return fabric.host(*fabric.FindHost(name)); };
  EXPECT_THAT(host("h1").features, ElementsAre("a100"));
  EXPECT_THAT(host("h1").partitions, ElementsAre("debug", "train"));
  EXPECT_THAT(host("h2").features, ElementsAre("ib", "test"));
  EXPECT_THAT(host("h2").partitions, ElementsAre());
  EXPECT_EQ(host("h2").gpus, 4);
  EXPECT_THAT(host("h4").features, ElementsAre("h100"));
  EXPECT_EQ(host("h5").gpus, 7);
}

struct Wrong {
  const char* name;
  const char* contents;
  const char* message;  // the whole
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

class CloseknitYamlErrors : public ::testing::TestWithParam<Wrong> {};

TEST_P(CloseknitYamlErrors, SayWhereWhatAndWhatWouldBeRight) {
  const absl::StatusOr<Fabric> fabric = ReadFabric(GetParam().contents, "f", FabricFormat::kYaml);
  ASSERT_EQ(fabric.status().code(), absl::StatusCode::kInvalidArgument) << fabric.status();
  EXPECT_EQ(std::string(fabric.status().message()), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, CloseknitYamlErrors,
    ::testing::Values(
        Wrong{"Empty", "", "f:1:1: the file is empty"},
        Wrong{"NoMap", "- a\n", "f:1:1: the description is a list; it must be a map, e.g. {version: ...}"},
        Wrong{"NoFabric", "name: x\n", "f:1:1: key 'fabric' is missing"},
        Wrong{"EmptyFabric", "fabric: []\n", "f:1:9: fabric: a list is not accepted; a list with one entry at least"},
        Wrong{"UnknownKey", "fabrik: []\nname: x\nfabric:\n  - {rack: r, host: h}\n",
              "f:1:1: unknown key 'fabrik'; did you mean 'fabric'?"},
        Wrong{"UnknownEntryKey", "fabric:\n  - {rack: r, hots: h}\n",
              "f:2:5: key 'host' is missing\nf:2:15: unknown key 'hots'; did you mean 'host'?"},
        Wrong{"StrangeKey", "fabric:\n  - {rack: r, host: h, colour: red}\n",
              "f:2:24: unknown key 'colour'; known: host, uplinks, rack, pod, core, gpus, rails, nics, features, partitions"},
        Wrong{"DuplicateKey", "fabric:\n  - {rack: r1, host: h1, rack: r2}\n", "f:2:26: key 'rack' is there already, in line 2"},
        Wrong{"Version", "version: 2\nfabric:\n  - {rack: r, host: h}\n", "f:1:10: version: '2' is not accepted; 1..1"},
        Wrong{"Syntax", "fabric: [\n", "f:2:1: not YAML: end of sequence flow not found"},
        Wrong{"TwoDocuments", "fabric:\n  - {rack: r, host: h}\n---\nfabric: []\n",
              "f:4:1: a second document; a description is one document"},
        Wrong{"DuplicateHost", "fabric:\n  - {rack: r1, host: \"h[1-3]\"}\n  - {rack: r2, host: h2}\n",
              "f:3:22: duplicate host: h2 is described already in line 2; do ranges overlap, or is a placeholder missing?"},
        Wrong{"OverlappingHosts", "fabric:\n  - {rack: r1, host: \"h[1-3,2]\"}\n",
              "f:2:23: duplicate host: h2 is described twice here; do ranges overlap, or is a placeholder missing?"},
        Wrong{"OverlappingRacks", "fabric:\n  - {rack: \"r[1-3,3]\", host: \"{rack}h1\"}\n",
              "f:2:13: rack r3 is there twice; do ranges overlap, or is {pod} missing in the names?"},
        Wrong{"RacksOfAllPods", "fabric:\n  - {pod: \"p[1-2]\", rack: \"r[1-2],r1,r3\", host: \"{rack}h1\"}\n",
              "f:2:28: rack r1 is there twice; do ranges overlap, or is {pod} missing in the names?"},
        Wrong{"RackInTwoPods", "fabric:\n  - {pod: p1, rack: r1, host: h1}\n  - {pod: p2, rack: r1, host: h2}\n",
              "f:3:21: rack r1 (line 2) is already below p1; a domain is below one"},
        Wrong{"NameOnTwoTiers", "fabric:\n  - {pod: x, rack: x, host: h1}\n",
              "f:2:20: there is already a pod x (line 2); names of domains are unique over all tiers"},
        Wrong{"Uneven", "fabric:\n  - {rack: \"r[1-4]\", host: \"h[1-10]\"}\n",
              "f:2:29: host: 10 names cannot be dealt evenly to 4 domains of tier rack; give a multiple of 4, or put {rack} into the names "
              "for a "
              "list of each"},
        Wrong{"BadBracket", "fabric:\n  - {rack: r1, host: \"h[1-\"}\n", "f:2:27: expected a number in brackets"},
        Wrong{"BadBracketAfterPlaceholder", "fabric:\n  - {rack: rack1, host: \"{rack}h[3-1]\"}\n", "f:2:37: the range 3-1 runs down"},
        Wrong{"BadName", "fabric:\n  - {rack: \"r!\", host: h}\n",
              "f:2:14: unexpected '!'; host names are letters, digits, '-', '_' and '.'"},
        Wrong{"EmptyList", "fabric:\n  - {rack: r, host: \" \"}\n", "f:2:22: the list is empty; name one at least, e.g. h[1-4]"},
        Wrong{"HostIsAList", "fabric:\n  - {rack: r, host: [h1, h2]}\n",
              "f:2:21: host: a list is not accepted; a host list, e.g. \"h[1-4]\""},
        Wrong{"UnknownPlaceholder", "fabric:\n  - {rack: r1, host: \"{rak}h[1-2]\"}\n",
              "f:2:23: unknown placeholder 'rak'; did you mean 'rack'?"},
        Wrong{"PlaceholderAbove", "fabric:\n  - {rack: \"{pod}r1\", host: h1}\n",
              "f:2:13: placeholder '{pod}': no domain is given above this one"},
        Wrong{"OpenPlaceholder", "fabric:\n  - {rack: r1, host: \"{rack\"}\n",
              "f:2:23: '{' without its '}'; a placeholder is {TIER}, e.g. {rack}"},
        Wrong{"NoNumber", "fabric:\n  - {rack: east, host: \"h{rack#}\"}\n",
              "f:2:26: placeholder '{rack#}': 'east' does not end in a number"},
        Wrong{"ZeroGpus", "fabric:\n  - {rack: r1, host: h1, gpus: 0}\n", "f:2:32: gpus: '0' is not accepted; 1..64"},
        Wrong{"ManyGpus", "hosts: {gpus: 65}\nfabric:\n  - {rack: r1, host: h1}\n", "f:1:15: gpus: '65' is not accepted; 1..64"},
        Wrong{"NoGpus", "hosts: {gpus: }\nfabric:\n  - {rack: r1, host: h1}\n", "f:1:15: gpus: nothing is not accepted; 1..64"},
        Wrong{"BadLinks", "hosts: {nics: 400}\nfabric:\n  - {rack: r1, host: h1}\n",
              "f:1:15: nics: '400' is not accepted; COUNTxGBITS, e.g. 16x400 for 16 links of 400 Gbit/s"},
        Wrong{"NegativeLinks", "hosts: {nics: 1x-5}\nfabric:\n  - {rack: r1, host: h1}\n",
              "f:1:15: nics: '1x-5' is not accepted; COUNTxGBITS, e.g. 16x400 for 16 links of 400 Gbit/s"},
        Wrong{"BadFeature", "hosts: {features: \"a b\"}\nfabric:\n  - {rack: r1, host: h1}\n",
              "f:1:19: features: 'a b' is not accepted; a word of letters, digits and _.:=/+-, or a list of them, e.g. [a100, ib]"},
        Wrong{"FeatureTwice", "hosts: {features: [a, a]}\nfabric:\n  - {rack: r1, host: h1}\n", "f:1:23: features: 'a' is there twice"},
        Wrong{"NoRack", "fabric:\n  - {pod: p1, host: h1}\n",
              "f:2:5: key 'rack' is missing; an entry names the rack, the pod and the host"},
        Wrong{"DifferentTiers", "fabric:\n  - {pod: p1, rack: r1, host: h1}\n  - {rack: r2, host: h2}\n",
              "f:3:5: this entry's highest tier is rack, that of earlier ones pod; name the same tiers in all, or give 'tiers'"},
        Wrong{"TwoRoots", "tiers: [{name: rack}, {name: pod}]\nfabric:\n  - {pod: \"p[1-2]\", rack: \"{pod}r\", host: \"{rack}h\"}\n",
              "f:3:12: not everything is below one domain; the last tier, pod, is the root, one domain: name it in every entry or in none, "
              "or "
              "add a tier above"},
        Wrong{"RootHere", "tiers: [{name: rack}, {name: pod}]\nfabric:\n  - {pod: p, rack: r1, host: h1}\n  - {rack: r2, host: h2}\n",
              "f:4:12: not everything is below one domain; the last tier, pod, is the root, one domain: name it in every entry or in none, "
              "or "
              "add a tier above"},
        Wrong{"TierTwice", "tiers: [{name: rack}, {name: rack}]\nfabric:\n  - {rack: r1, host: h1}\n",
              "f:1:30: tier 'rack' is there twice"},
        Wrong{"TierHost", "tiers: [{name: host}]\nfabric:\n  - {host: h1}\n",
              "f:1:16: a tier cannot be named 'host': that key has a meaning of its own"},
        Wrong{"SevenTiers", "tiers: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}, {name: f}, {name: g}]\nfabric: [{host: h}]\n",
              "f:1:8: 7 tiers; at most 6"},
        Wrong{"RootUplinks", "tiers: [{name: rack, uplinks: 1x1}]\nfabric:\n  - {host: h1}\n",
              "f:1:8: the last tier, rack, is the root: it has no uplinks; take them out, or add the tier that they lead to"},
        Wrong{"UplinksOfUnknownTier", "fabric:\n  - {rack: r1, host: h1, uplinks: {pod: 1x1}}\n", "f:2:36: unknown key 'pod'; known: rack"},
        Wrong{"UplinksTwice",
              "fabric:\n  - {rack: r1, host: h1, uplinks: {rack: 1x100}}\n  - {rack: r1, host: h2, uplinks: {rack: 2x100}}\n",
              "f:3:12: rack r1 (line 2) was given other uplinks before; give them once"},
        Wrong{"UnknownOverride", "fabric:\n  - {rack: r1, host: \"h[1-2]\"}\noverrides:\n  - {hosts: \"h[2-3]\", gpus: 1}\n",
              "f:4:14: unknown host h3; an override is of hosts that 'fabric' describes"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace closeknit
