// The example topologies are what their names and comments say.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "cluster_model/readers.h"

namespace closeknit {
namespace {

Fabric Read(const std::string& name) {
  const std::string path = std::string(CLOSEKNIT_SOURCE_DIR) + "/deploy/topologies/" + name;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream contents;
  contents << file.rdbuf();
  absl::StatusOr<Fabric> fabric = ReadFabric(contents.str(), name);
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  return *std::move(fabric);
}

// Capacity towards the hosts over capacity upwards, of one domain.
double Oversubscription(const Fabric& fabric, absl::string_view name) {
  const Domain& domain = fabric.domain(*fabric.FindDomain(name));
  double below = 0;
  for (const DomainId child : domain.children) below += fabric.domain(child).uplinks.total_gbps();
  for (uint32_t h = domain.first_host.value; domain.tier == 1 && h < domain.end_host.value; ++h) {
    below += fabric.host(HostId{h}).nics.total_gbps();
  }
  return below / domain.uplinks.total_gbps();
}

TEST(Examples, Lab) {
  const Fabric fabric = Read("lab.yaml");
  EXPECT_EQ(fabric.hosts().size(), 2u);
  EXPECT_EQ(fabric.top(), 1);
}

TEST(Examples, LoopbackHasTwoRacksOfTwo) {
  const Fabric fabric = Read("loopback.yaml");
  EXPECT_EQ(fabric.total_gpus(), 8);
  EXPECT_EQ(fabric.CommonTier(*fabric.FindHost("host1"), *fabric.FindHost("host2")), 1);
  EXPECT_EQ(fabric.CommonTier(*fabric.FindHost("host2"), *fabric.FindHost("host3")), 2);
  EXPECT_EQ(fabric.CommonTier(*fabric.FindHost("host3"), *fabric.FindHost("host4")), 1);
}

TEST(Examples, RoceIsSevenToOneAboveThePods) {
  const Fabric fabric = Read("roce-24576.yaml");
  EXPECT_EQ(fabric.total_gpus(), 24576);
  EXPECT_EQ(fabric.DomainsAt(1).size(), 1536u);
  EXPECT_EQ(fabric.DomainsAt(2).size(), 8u);
  EXPECT_EQ(fabric.domain(*fabric.FindDomain("pod3")).host_count(), 384);
  EXPECT_TRUE(fabric.StatesCapacities());
  EXPECT_NEAR(Oversubscription(fabric, "pod1r001"), 1, 1e-9);
  EXPECT_NEAR(Oversubscription(fabric, "pod1"), 7, 0.01);
}

TEST(Examples, RailOptimisedUnitsHave32Hosts) {
  const Fabric fabric = Read("ib-rail-optimised.yaml");
  EXPECT_EQ(fabric.total_gpus(), 24576);
  EXPECT_EQ(fabric.TierNames(), "su, pod, core");
  for (const DomainId unit : fabric.DomainsAt(1)) EXPECT_EQ(fabric.domain(unit).host_count(), 32);
  EXPECT_NEAR(Oversubscription(fabric, "pod1su01"), 1, 1e-9);
  EXPECT_NEAR(Oversubscription(fabric, "pod6"), 1, 1e-9);
}

TEST(Examples, EstateHas350000Gpus) {
  const Fabric fabric = Read("estate-350000.yaml");
  EXPECT_EQ(fabric.total_gpus(), 350000);
  EXPECT_EQ(fabric.hosts().size(), 43750u);
  EXPECT_EQ(fabric.DomainsAt(3).size(), 15u);
  EXPECT_TRUE(fabric.StatesCapacities());
}

TEST(Examples, ForeignFormats) {
  EXPECT_EQ(Read("slurm-topology.conf").hosts().size(), 16u);
  EXPECT_EQ(Read("slurm-topology.yaml").hosts().size(), 8u);
  const Fabric subnet = Read("ibnetdiscover.txt");
  EXPECT_EQ(subnet.hosts().size(), 4u) << "login1 is left out";
  EXPECT_EQ(subnet.DomainsAt(1).size(), 2u);
}

}  // namespace
}  // namespace closeknit
