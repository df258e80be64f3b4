// Slurm's topology.conf and topology.yaml.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "cluster_model/readers.h"
#include "proto/base/host_list.h"

namespace closeknit {
namespace {

Fabric Read(absl::string_view contents) {
  absl::StatusOr<Fabric> fabric = ReadFabric(contents, "f");
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  return *std::move(fabric);
}

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

TEST(SlurmConf, ReadsSwitchesInAnyOrder) {
  const Fabric fabric = Read(R"(
SwitchName=s0 Switches=s[2,1,3]
SwitchName=s2 Nodes=tux[4-7]
SwitchName=s1 Nodes=tux[0-3]
SwitchName=s3 Nodes=tux[8-11],login
)");
  EXPECT_EQ(Show(fabric, 1), "s2: tux[4-7]; s1: tux[0-3]; s3: tux[8-11],login");
  EXPECT_EQ(fabric.TierNames(), "rack, pod");
  EXPECT_EQ(fabric.domain(fabric.root()).name, "s0");
  EXPECT_EQ(fabric.host(HostId{0}).gpus, 8);
  EXPECT_EQ(fabric.host(HostId{0}).rails, 0);
  EXPECT_FALSE(fabric.StatesCapacities());
}

TEST(SlurmConf, KeysCommentsQuotesAndContinuationsAreSlurms) {
  const Fabric fabric = Read(
      "# a comment\n"
      "\n"
      "switchname = s1 NODES=\"h1, h2\" LinkSpeed=400 # the first\n"
      "SWITCHNAME=s2 \\\n"
      "    nodes=h[3-\\\n"
      "4]\r\n"
      "SwitchName=s3 Switches=s[1-2]");
  EXPECT_EQ(Show(fabric, 1), "s1: h[1-2]; s2: h[3-4]");
}

TEST(SlurmConf, SeveralTreesAreJoined) {
  const Fabric fabric = Read("SwitchName=a Nodes=h[1-2]\nSwitchName=b Nodes=h[3-4]\n");
  EXPECT_EQ(fabric.top(), 2);
  EXPECT_EQ(Show(fabric, 2), "fabric: h[1-4]");
}

TEST(SlurmConf, LeavesMayHangAtDifferentHeights) {
  const Fabric fabric = Read("SwitchName=l1 Nodes=h1\nSwitchName=l2 Nodes=h2\nSwitchName=s1 Switches=l1\nSwitchName=c Switches=s1,l2\n");
  EXPECT_EQ(fabric.top(), 3);
  EXPECT_EQ(Show(fabric, 2), "s1: h1; l2@pod: h2");
}

TEST(SlurmConf, ACommentLineSaysWhatTheFormatCannot) {
  const Fabric fabric = Read("#closeknit: gpus=4 nics=4x200 rails=4\nSwitchName=a Nodes=h[1-2]\n");
  EXPECT_EQ(fabric.total_gpus(), 8);
  EXPECT_EQ(fabric.host(HostId{1}).nics, (Uplinks{4, 200}));
  EXPECT_EQ(fabric.host(HostId{1}).rails, 4);
}

TEST(SlurmConf, AFileOfCommentsHasNoSwitch) {
  EXPECT_EQ(std::string(ReadFabric("# nothing\n", "f", FabricFormat::kSlurmConf).status().message()),
            "f:1:1: the description has no switch");
}

TEST(SlurmYaml, ReadsTheTreeForm) {
  const Fabric fabric = Read(R"(---
- topology: topo2
  block: {block_sizes: [4], blocks: []}
- topology: topo1
  cluster_default: True
  tree:
    switches:
      - switch: sw_root
        children: s[1-2]
      - switch: s1
        nodes: node[01-02]
      - switch: s2
        nodes: node[03-04]
- topology: topo3
  flat: true
)");
  EXPECT_EQ(Show(fabric, 1), "s1: node[01-02]; s2: node[03-04]");
  EXPECT_EQ(Show(fabric, 2), "sw_root: node[01-04]");
}

TEST(SlurmYaml, TheOnlyTreeNeedsNoDefault) {
  EXPECT_EQ(Show(Read("- {topology: t, flat: true}\n- topology: u\n  tree: {switches: [{switch: s, nodes: h1}]}\n"), 1), "s: h1");
}

struct Wrong {
  const char* name;
  const char* contents;
  const char* message;  // the whole
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

class SlurmErrors : public ::testing::TestWithParam<Wrong> {};

TEST_P(SlurmErrors, SayWhereWhatAndWhatWouldBeRight) {
  const absl::StatusOr<Fabric> fabric = ReadFabric(GetParam().contents, "f");
  ASSERT_EQ(fabric.status().code(), absl::StatusCode::kInvalidArgument) << fabric.status();
  EXPECT_EQ(std::string(fabric.status().message()), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Conf, SlurmErrors,
    ::testing::Values(
        Wrong{"DuplicateHost", "SwitchName=a Nodes=h[1-2]\nSwitchName=b Nodes=h[2-3]\n",
              "f:2:20: duplicate host: node h2 is already below switch a (line 1); give a node one leaf switch (of parallel rails, name "
              "the group)"},
        Wrong{"OverlappingNodes", "SwitchName=a Nodes=h[1-3,2]\n", "f:1:20: node h2 is there twice; do ranges overlap?"},
        Wrong{"OverlappingSwitches", "SwitchName=a Nodes=h1\nSwitchName=b Switches=a,a\n",
              "f:2:23: switch a is there twice; do ranges overlap?"},
        Wrong{"DuplicateSwitch", "SwitchName=a Nodes=h1\nSwitchName=a Nodes=h2\n",
              "f:2:12: switch a is described already in line 1; names are unique"},
        Wrong{"UnknownChild", "SwitchName=a Nodes=h1\nSwitchName=b Switches=a,c\n",
              "f:2:23: unknown child: no switch c is described; describe it, or take it out of the children of b"},
        Wrong{"TwoParents", "SwitchName=a Nodes=h1\nSwitchName=b Switches=a\nSwitchName=c Switches=a\n",
              "f:3:23: switch a is already below switch b (line 2); a tree has one parent each: name parallel switches as one"},
        Wrong{"Cycle", "SwitchName=a Switches=b\nSwitchName=b Switches=c\nSwitchName=c Switches=a\nSwitchName=d Nodes=h1\n",
              "f:1:12: cycle: a > b > c > a; a switch cannot be below itself"},
        Wrong{"OwnChild", "SwitchName=a Switches=a\n", "f:1:12: cycle: a > a; a switch cannot be below itself"},
        Wrong{"Orphan", "SwitchName=a Nodes=h1\nSwitchName=b Nodes=h2\nSwitchName=c Switches=a\n",
              "f:2:12: orphan: switch b is below no other switch, while there are switches above its like; add it to the children of one"},
        Wrong{"Both", "SwitchName=a Nodes=h1\nSwitchName=b Nodes=h2 Switches=a\n",
              "f:2:12: switch b has both Switches= and Nodes=; put the nodes below a leaf switch"},
        Wrong{"Neither", "SwitchName=a LinkSpeed=4\n", "f:1:12: switch a has no children; give it Nodes= or Switches="},
        Wrong{"EmptyNodes", "SwitchName=a Nodes=\n", "f:1:20: Nodes= is empty; list what is below the switch, e.g. h[1-4]"},
        Wrong{"NoName", "Nodes=h1 LinkSpeed=1\n", "f:1:1: a line without SwitchName=; each line describes one switch"},
        Wrong{"EmptyName", "SwitchName= Nodes=h1\n", "f:1:18: unexpected '='; host names are letters, digits, '-', '_' and '.'"},
        Wrong{"ManyNames", "SwitchName=a[1-2] Nodes=h1\n", "f:1:12: SwitchName=a[1-2] names 2 switches; one line each"},
        Wrong{"KeyTwice", "SwitchName=a Nodes=h1 nodes=h2\n", "f:1:23: nodes is there twice in one line; join the lists with a comma"},
        Wrong{"UnknownKey", "SwitchName=a Node=h1\n", "f:1:14: unknown key 'Node'; did you mean 'Nodes'?"},
        Wrong{"Block", "BlockName=b Nodes=h1\n",
              "f:1:1: BlockName is of topology/block; describe the tree of switches with SwitchName=\n"
              "f:1:1: a line without SwitchName=; each line describes one switch"},
        Wrong{"NoValue", "SwitchName=a Nodes\n", "f:1:14: 'Nodes' is not KEY=VALUE; e.g. SwitchName=s1 Nodes=h[1-4]"},
        Wrong{"OpenQuote", "SwitchName=a Nodes=\"h1\n", "f:1:20: a quote that does not end; add '\"'"},
        Wrong{"BadBracket", "SwitchName=a Nodes=h[1-2\n", "f:1:25: '[' without its ']'"},
        Wrong{"BadBracketOnTheNextLine", "SwitchName=a Nodes=h1,\\\nh[2-1]\n", "f:2:6: the range 2-1 runs down"},
        Wrong{"ZeroGpus", "  #closeknit: rails=4 gpus=0\nSwitchName=a Nodes=h1\n", "f:1:23: gpus=0 is not accepted; 1..64"},
        Wrong{"UnknownSetting", "#closeknit: gpu=4\nSwitchName=a Nodes=h1\n", "f:1:13: unknown setting 'gpu'; did you mean 'gpus'?"},
        Wrong{"HostsSetting", "#closeknit: hosts=h1\nSwitchName=a Nodes=h[1-2]\n",
              "f:1:13: hosts= is for ibnetdiscover output; Slurm's files list compute nodes only"},
        Wrong{"SevenTiers",
              "SwitchName=a Nodes=h\nSwitchName=b Switches=a\nSwitchName=c Switches=b\nSwitchName=d Switches=c\nSwitchName=e Switches=d\n"
              "SwitchName=f Switches=e\nSwitchName=g Switches=f\n",
              "f:7:12: switch g has more than 5 tiers of switches below it; at most 6 tiers are supported"}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Yaml, SlurmErrors,
    ::testing::Values(
        Wrong{"DuplicateHost",
              "- topology: t\n  tree:\n    switches:\n    - {switch: a, nodes: \"h[1-2]\"}\n    - {switch: b, nodes: h2}\n",
              "f:5:26: duplicate host: node h2 is already below switch a (line 4); give a node one leaf switch (of parallel rails, name "
              "the group)"},
        Wrong{"OverlappingNodes", "- topology: t\n  tree:\n    switches:\n    - {switch: a, nodes: \"h[1-2,2]\"}\n",
              "f:4:27: node h2 is there twice; do ranges overlap?"},
        Wrong{"UnknownChild", "- topology: t\n  tree:\n    switches:\n    - {switch: a, children: b}\n",
              "f:4:29: unknown child: no switch b is described; describe it, or take it out of the children of a"},
        Wrong{"Cycle", "- topology: t\n  tree:\n    switches:\n    - {switch: a, children: b}\n    - {switch: b, children: a}\n",
              "f:4:16: cycle: a > b > a; a switch cannot be below itself"},
        Wrong{"Orphan",
              "- topology: t\n  tree:\n    switches:\n    - {switch: a, children: b}\n    - {switch: b, nodes: h1}\n    - {switch: c, "
              "nodes: h2}\n",
              "f:6:16: orphan: switch c is below no other switch, while there are switches above its like; add it to the children of one"},
        Wrong{"Both", "- topology: t\n  tree:\n    switches:\n    - {switch: a, nodes: h1, children: b}\n",
              "f:4:16: switch a has both 'children' and 'nodes'; put the nodes below a leaf switch"},
        Wrong{"Neither", "- topology: t\n  tree:\n    switches:\n    - {switch: a}\n",
              "f:4:16: switch a has neither 'children' nor 'nodes'; give it one"},
        Wrong{"BadBracket", "- topology: t\n  tree:\n    switches:\n    - {switch: a, nodes: \"h[2-1]\"}\n",
              "f:4:32: the range 2-1 runs down"},
        Wrong{"NodesAreAList", "- topology: t\n  tree:\n    switches:\n    - {switch: a, nodes: [h1, h2]}\n",
              "f:4:26: nodes: a list is not accepted; a host list, e.g. h[1-4]"},
        Wrong{"ZeroGpus", "#closeknit: gpus=0\n- topology: t\n  tree: {switches: [{switch: a, nodes: h1}]}\n",
              "f:1:13: gpus=0 is not accepted; 1..64"},
        Wrong{"UnknownKey", "- topology: t\n  tree: {switches: [{switch: a, node: h1}]}\n",
              "f:2:33: unknown key 'node'; did you mean 'nodes'?"},
        Wrong{"DuplicateKey", "- topology: t\n  topology: u\n", "f:2:3: key 'topology' is there already, in line 1"},
        Wrong{"NoTree", "- topology: t\n  flat: true\n", "f:1:1: the file has 0 topologies with a 'tree'; one is needed"},
        Wrong{"DefaultIsNoTree", "- topology: t\n  cluster_default: true\n  flat: true\n",
              "f:1:3: the topology with 'cluster_default: true' has no 'tree'; only trees are read"},
        Wrong{"TwoTrees", "- topology: t\n  tree: {switches: []}\n- topology: u\n  tree: {switches: []}\n",
              "f:1:1: the file has 2 topologies with a 'tree'; set 'cluster_default: true' in the one to read"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace closeknit
