#include "cluster_model/readers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace closeknit {
namespace {

TEST(ReadFabric, ReadsRangesWithPlaceholders) {
  const absl::StatusOr<Fabric> fabric = ReadFabric(R"(
name: roce
tiers:
  - {name: rack, uplinks: 16x400}
  - {name: pod, uplinks: 439x400}
  - {name: core}
hosts: {gpus: 8, nics: 8x400}
fabric:
  - {pod: "pod[1-8]", rack: "{pod}r[001-192]", host: "{rack}h[1-2]"}
)",
                                                   "roce.yaml");
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  EXPECT_EQ(fabric->total_gpus(), 24576);
  EXPECT_EQ(fabric->DomainsAt(1).size(), 1536u);
  EXPECT_TRUE(fabric->FindHost("pod8r192h2").has_value());
}

}  // namespace
}  // namespace closeknit
