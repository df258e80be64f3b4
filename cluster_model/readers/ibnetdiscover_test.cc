#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "cluster_model/readers.h"
#include "proto/base/host_list.h"

namespace closeknit {
namespace {

// Writes what ibnetdiscover would print of a subnet.
class Subnet {
 public:
  void Switch(const std::string& name) {
    nodes_[name] = {absl::StrCat("S-", Guid(), "aaaa"), absl::StrCat("MF0;", name, ":MQM9700/U1"), {}};
  }
  // `description`: "h1 mlx5_0".
  void Adapter(const std::string& description) { nodes_[description] = {absl::StrCat("H-", Guid(), "cccc"), description, {}}; }
  void Link(const std::string& a, const std::string& b, const std::string& rate = "4xNDR") {
    nodes_[a].links.push_back({b, rate});
    nodes_[b].links.push_back({a, rate});
  }
  // The blocks in an order of their own for each seed.
  std::string Text(uint32_t seed = 0) const {
    std::vector<std::string> blocks;
    for (const auto& [key, node] : nodes_) blocks.push_back(Block(node));
    std::mt19937 random(seed);
    std::shuffle(blocks.begin(), blocks.end(), random);
    std::string text = "#\n# Topology file: generated on Mon Nov 30 21:00:00 2026\n#\n# Initiated from node 506b4b0300000001\n\n";
    for (const std::string& block : blocks) absl::StrAppend(&text, block, "\n");
    return text;
  }

 private:
  struct Node {
    std::string id, description;
    std::vector<std::pair<std::string, std::string>> links;
  };

  std::string Guid() { return absl::StrCat(absl::Hex(0x506b4b03 + ++made_, absl::kZeroPad12)); }

  std::string Block(const Node& node) const {
    const bool is_switch = node.id[0] == 'S';
    std::string text =
        absl::StrCat("vendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x", node.id.substr(2), "\n", is_switch ? "switchguid=0x" : "caguid=0x",
                     node.id.substr(2), "\n", is_switch ? "Switch\t65 \"" : "Ca\t1 \"", node.id, "\"\t\t# \"", node.description, "\"",
                     is_switch ? " enhanced port 0 lid 1 lmc 0\n" : "\n");
    int port = 0;
    for (const auto& [peer_key, rate] : node.links) {
      const Node& peer = nodes_.at(peer_key);
      absl::StrAppend(&text, "[", ++port, "]", is_switch ? "" : absl::StrCat("(", node.id.substr(2), ") "), "\t\"", peer.id, "\"[1]",
                      peer.id[0] == 'H' ? absl::StrCat("(", peer.id.substr(2), ") ") : "", "\t\t# ", is_switch ? "" : "lid 9 lmc 0 ", "\"",
                      peer.description, "\" lid 12 ", rate, "\n");
    }
    return text;
  }

  std::map<std::string, Node> nodes_;
  int made_ = 0;
};

// Scalable units of 4 hosts with 4 rails: GPU i of every host on leaf i of its unit; spine group i above the leaves i of a pod.
Subnet RailOptimised(int pods, int units) {
  Subnet subnet;
  int hosts = 0;
  for (int pod = 1; pod <= pods; ++pod) {
    for (int rail = 1; rail <= 4; ++rail) subnet.Switch(absl::StrCat("spine-", pod, "-", rail));
    for (int unit = 1; unit <= units; ++unit) {
      for (int rail = 1; rail <= 4; ++rail) {
        const std::string leaf = absl::StrCat("leaf-", pod, "-", unit, "-", rail);
        subnet.Switch(leaf);
        for (int link = 0; link < 4; ++link) subnet.Link(leaf, absl::StrCat("spine-", pod, "-", rail));
      }
      for (int host = 0; host < 4; ++host) {
        ++hosts;
        for (int rail = 1; rail <= 4; ++rail) {
          const std::string adapter = absl::StrCat("h", hosts, " mlx5_", rail);
          subnet.Adapter(adapter);
          subnet.Link(adapter, absl::StrCat("leaf-", pod, "-", unit, "-", rail));
        }
      }
    }
  }
  if (pods > 1) {
    subnet.Switch("core-1");
    for (int pod = 1; pod <= pods; ++pod) {
      for (int rail = 1; rail <= 4; ++rail) subnet.Link(absl::StrCat("spine-", pod, "-", rail), "core-1", "4xHDR");
    }
  }
  return subnet;
}

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

TEST(IbNetDiscover, HostsOnTheSameLeavesAreOneUnit) {
  const Fabric fabric = Read(RailOptimised(1, 3).Text());
  EXPECT_EQ(fabric.TierNames(), "su, pod");
  EXPECT_EQ(Show(fabric, 1), "su1: h[1-4]; su2: h[5-8]; su3: h[9-12]");
  EXPECT_EQ(Show(fabric, 2), "pod1: h[1-12]");
  EXPECT_TRUE(fabric.StatesCapacities());
  EXPECT_EQ(fabric.host(HostId{0}).nics, (Uplinks{4, 400}));
  EXPECT_EQ(fabric.host(HostId{0}).rails, 4);
  EXPECT_EQ(fabric.host(HostId{0}).gpus, 8);
  EXPECT_EQ(fabric.domain(*fabric.FindDomain("su1")).uplinks, (Uplinks{16, 400}));
}

TEST(IbNetDiscover, LevelsOfSwitchesAreTiers) {
  const Fabric fabric = Read(RailOptimised(2, 2).Text());
  EXPECT_EQ(fabric.TierNames(), "su, pod, core");
  EXPECT_EQ(Show(fabric, 2), "pod1: h[1-8]; pod2: h[9-16]");
  EXPECT_EQ(Show(fabric, 3), "core-1: h[1-16]");
  EXPECT_EQ(fabric.domain(*fabric.FindDomain("pod1")).uplinks, (Uplinks{4, 200}));
}

TEST(IbNetDiscover, TheOrderOfBlocksDoesNotMatter) {
  const std::string first = Show(Read(RailOptimised(3, 2).Text(1)), 1);
  for (uint32_t seed = 2; seed < 12; ++seed) EXPECT_EQ(Show(Read(RailOptimised(3, 2).Text(seed)), 1), first);
}

TEST(IbNetDiscover, ARackBelowOneLeafIsNamedAfterIt) {
  Subnet subnet;
  subnet.Switch("spine1");
  for (const char* rack : {"rackA", "rackB"}) {
    subnet.Switch(rack);
    subnet.Link(rack, "spine1");
  }
  for (int host = 1; host <= 4; ++host) {
    subnet.Adapter(absl::StrCat("n", host, " mlx5_0"));
    subnet.Link(absl::StrCat("n", host, " mlx5_0"), host % 2 == 1 ? "rackA" : "rackB", "4xEDR");
  }
  const Fabric fabric = Read(subnet.Text());
  EXPECT_EQ(fabric.TierNames(), "rack, pod");
  EXPECT_EQ(Show(fabric, 1), "rackA: n[1,3]; rackB: n[2,4]");
  EXPECT_EQ(Show(fabric, 2), "spine1: n[1,3,2,4]");
  EXPECT_EQ(fabric.host(HostId{0}).nics, (Uplinks{1, 100}));
}

TEST(IbNetDiscover, AHostWithARailDownOrAWrongCableStaysInItsUnit) {
  Subnet subnet = RailOptimised(1, 2);
  for (const auto& [host, leaf] : std::vector<std::pair<std::string, std::string>>{{"h2b", ""}, {"h6b", "leaf-1-1-4"}}) {
    const std::string unit = host == "h2b" ? "leaf-1-1-" : "leaf-1-2-";
    for (int rail = 1; rail <= 4; ++rail) {
      const std::string adapter = absl::StrCat(host, " mlx5_", rail);
      subnet.Adapter(adapter);
      if (rail < 4) subnet.Link(adapter, absl::StrCat(unit, rail));
    }
    // h6b's fourth cable is in the other unit's leaf; that of h2b is out: ibnetdiscover does not see the adapter then, but one with a link
    // does.
    subnet.Link(absl::StrCat(host, " mlx5_4"), leaf.empty() ? "leaf-1-1-3" : leaf);
  }
  EXPECT_EQ(Show(Read(subnet.Text()), 1), "su1: h[1-2],h2b,h[3-4]; su2: h[5-6],h6b,h[7-8]");
}

TEST(IbNetDiscover, AServiceOnASpineMakesItNoLeaf) {
  Subnet subnet = RailOptimised(1, 2);
  subnet.Adapter("ufm1 mlx5_0");
  subnet.Link("ufm1 mlx5_0", "spine-1-1");
  EXPECT_EQ(Show(Read(subnet.Text()), 2), "pod1: ufm1,h[1-8]");
  EXPECT_EQ(Read(subnet.Text()).top(), 2);
  const Fabric fabric = Read(absl::StrCat("#closeknit: hosts=h[1-99] gpus=4\n", subnet.Text()));
  EXPECT_EQ(Show(fabric, 1), "su1: h[1-4]; su2: h[5-8]");
  EXPECT_EQ(fabric.total_gpus(), 32);
}

TEST(IbNetDiscover, LeavesWithoutComputeHostsMakeNoTier) {
  Subnet subnet = RailOptimised(1, 2);
  subnet.Switch("empty-leaf");
  subnet.Link("empty-leaf", "spine-1-1");
  subnet.Switch("storage-leaf");
  subnet.Link("storage-leaf", "spine-1-2");
  for (int server = 1; server <= 4; ++server) {
    subnet.Adapter(absl::StrCat("nas", server, " mlx5_0"));
    subnet.Link(absl::StrCat("nas", server, " mlx5_0"), "storage-leaf");
  }
  const Fabric fabric = Read(absl::StrCat("#closeknit: hosts=h[1-8]\n", subnet.Text()));
  EXPECT_EQ(fabric.top(), 2);
  EXPECT_EQ(Show(fabric, 1), "su1: h[1-4]; su2: h[5-8]");
  EXPECT_EQ(Show(Read(subnet.Text()), 1), "su1: h[1-4]; su2: h[5-8]; storage-leaf: nas[1-4]");
}

TEST(IbNetDiscover, TwoSwitchesLinkedToEachOtherAreTwoRacks) {
  Subnet subnet;
  for (const char* rack : {"a", "b"}) {
    subnet.Switch(rack);
    for (int host = 1; host <= 2; ++host) {
      subnet.Adapter(absl::StrCat(rack, host, " mlx5_0"));
      subnet.Link(absl::StrCat(rack, host, " mlx5_0"), rack);
    }
  }
  subnet.Link("a", "b");
  const Fabric fabric = Read(subnet.Text());
  EXPECT_EQ(Show(fabric, 1), "a: a[1-2]; b: b[1-2]");
  EXPECT_EQ(fabric.top(), 2);
}

TEST(IbNetDiscover, RoutersAggregationNodesAndOldFormsAreUnderstood) {
  const Fabric fabric = Read(R"(#
# Topology file: generated on Tue Jun  5 14:15:10 2007
#
# Max of 3 hops discovered

Non-Chassis Nodes

vendid=0x8f1
devid=0x5a06
switchguid=0x5442ba00003080(5442ba00003080)
Switch  24 "S-005442ba00003080"         # "ISR9024 Voltaire" base port 0 lid 6 lmc 0
[22][ext 3]    "H-0008f10403961354"[1](8f10403961355)         # "atlas35" lid 4 4xSDR
[8]     "H-0008f10403960558"[2](8f1040396055a)         # "atlas36" lid 4
[9]     "H-aaaa"[1]         # "Mellanox Technologies Aggregation Node" lid 5 4xHDR
[10]    "R-bbbb"[1]         # "router" lid 7 4xSDR

vendid=0x8f1
caguid=0x8f10403961354
Ca      2 "H-0008f10403961354"         # "atlas35"
[1](8f10403961355)     "S-005442ba00003080"[22]         # lid 4 lmc 1 "ISR9024 Voltaire" lid 6 4xSDR

Ca      2 "H-0008f10403960558"         # "atlas36"
[2](8f1040396055a)     "S-005442ba00003080"[8]         # lid 14 lmc 1 "ISR9024 Voltaire" lid 6

Ca      1 "H-aaaa"         # "Mellanox Technologies Aggregation Node"
[1]     "S-005442ba00003080"[9]         # lid 5 lmc 0 "ISR9024 Voltaire" lid 6 4xHDR

rtguid=0xbbbb
Rt      2 "R-bbbb"         # "router"
[1]     "S-005442ba00003080"[10]        # lid 7 lmc 0 "ISR9024 Voltaire" lid 6 4xSDR
)");
  EXPECT_EQ(Show(fabric, 1), "rack1: atlas[35-36]");
  EXPECT_EQ(fabric.host(HostId{0}).nics, (Uplinks{1, 10}));
  EXPECT_EQ(fabric.host(HostId{1}).nics, Uplinks{}) << "no rate given";
}

struct Wrong {
  const char* name;
  const char* contents;
  const char* message;  // the whole
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

class IbNetDiscoverErrors : public ::testing::TestWithParam<Wrong> {};

TEST_P(IbNetDiscoverErrors, SayWhereWhatAndWhatWouldBeRight) {
  const absl::StatusOr<Fabric> fabric = ReadFabric(GetParam().contents, "f", FabricFormat::kIbNetDiscover);
  ASSERT_EQ(fabric.status().code(), absl::StatusCode::kInvalidArgument) << fabric.status();
  EXPECT_EQ(std::string(fabric.status().message()), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, IbNetDiscoverErrors,
    ::testing::Values(
        Wrong{"Empty", "#\n", "f:1:1: the subnet has no host; the file needs the Ca blocks of ibnetdiscover's output"},
        Wrong{"DuplicateHost",
              "Switch 2 \"S-1\" # \"s\"\nCa 1 \"H-1\" # \"h1 mlx5_0\"\n[1] \"S-1\"[1]\nCa 1 \"H-2\" # \"h1 mlx5_0\"\n[1] \"S-1\"[2]\n",
              "f:4:1: duplicate host: another adapter is named 'h1 mlx5_0' in line 2; two hosts of one name, or descriptions that are not "
              "set "
              "(rdma-ndd sets them)"},
        Wrong{"DuplicateNode", "Switch 2 \"S-1\" # \"s\"\nSwitch 2 \"S-1\" # \"s\"\n", "f:2:1: node S-1 is described already in line 1"},
        Wrong{"UnknownChild", "Switch 2 \"S-1\" # \"s\"\n[1] \"H-9\"[1]\n",
              "f:2:5: unknown child: the file has no block of H-9; use the whole output"},
        Wrong{"OrphanHost", "Switch 2 \"S-1\" # \"s\"\nCa 1 \"H-1\" # \"h1 mlx5_0\"\n",
              "f:2:1: orphan: adapter 'h1 mlx5_0' is linked to no switch"},
        Wrong{"OrphanSwitch", "Switch 2 \"S-1\" # \"s\"\nSwitch 2 \"S-2\" # \"t\"\nCa 1 \"H-1\" # \"h1 mlx5_0\"\n[1] \"S-1\"[1]\n",
              "f:2:1: orphan: switch 't' (S-2) is linked to no other"},
        Wrong{"PointToPoint", "Ca 1 \"H-1\" # \"h1 mlx5_0\"\n[1] \"H-2\"[1]\nCa 1 \"H-2\" # \"h2 mlx5_0\"\n",
              "f:2:5: adapter H-1 is linked to another adapter; hosts hang on switches"},
        Wrong{"NoHostName", "Switch 2 \"S-1\" # \"s\"\nCa 1 \"H-1\" # \"!x mlx5_0\"\n[1] \"S-1\"[1]\n",
              "f:2:1: the description '!x mlx5_0' of adapter H-1 does not begin with a host name; set it, e.g. with rdma-ndd"},
        Wrong{"BadBracket", "Switch 2 \"S-1\" # \"s\"\n[x] \"S-1\"[1]\n", "f:2:1: bad bracket: expected a port, e.g. [1]"},
        Wrong{"BadPeerBracket", "Switch 2 \"S-1\" # \"s\"\n[1] \"S-1\"[1\n", "f:2:10: bad bracket: expected a port, e.g. [1]"},
        Wrong{"NoPeer", "Switch 2 \"S-1\" # \"s\"\n[1] S-1[1]\n", "f:2:5: expected the peer in quotes, e.g. \"S-506b4b0300123456\"[1]"},
        Wrong{"NoNode", "Switch 2 S-1\n", "f:1:10: expected the node in quotes, e.g. \"S-506b4b0300123456\""},
        Wrong{"NoPorts", "Switch x \"S-1\"\n", "f:1:8: expected the number of ports"},
        Wrong{"EarlyLink", "[1] \"S-1\"[1]\n", "f:1:1: a link before any Switch, Ca or Rt"},
        Wrong{"StrangeLine", "Swich 2 \"S-1\"\n", "f:1:1: 'Swich' begins no line of ibnetdiscover; Switch, Ca, Rt or [PORT]"},
        Wrong{"ZeroGpus", "#closeknit: gpus=0\nSwitch 2 \"S-1\" # \"s\"\n", "f:1:13: gpus=0 is not accepted; 1..64"},
        Wrong{"OverlappingHosts", "#closeknit: hosts=h[1-\n", "f:1:23: expected a number in brackets"},
        Wrong{"NoneOfTheHosts", "#closeknit: hosts=x\nSwitch 2 \"S-1\" # \"s\"\nCa 1 \"H-1\" # \"h1 mlx5_0\"\n[1] \"S-1\"[1]\n",
              "f:1:1: the subnet has none of the hosts that '#closeknit: hosts=' names"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace closeknit
