#include "placement/from_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster_model/test_cluster.h"

namespace closeknit {
namespace {

using ::testing::HasSubstr;

class FromProto : public ::testing::Test {
 protected:
  FromProto() {
    spec_.set_nodes(4);
    spec_.set_gpus_per_node(8);
  }
  v1::ParallelDimension& Add(const std::string& name, uint32_t degree) {
    v1::ParallelDimension& dimension = *spec_.add_parallelism();
    dimension.set_name(name);
    dimension.set_degree(degree);
    return dimension;
  }
  std::string Error() {
    const absl::Status status = ToGangRequest(spec_, cluster_.fabric()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  Cluster cluster_{"2 pods x 2 racks x 2 hosts"};
  v1::JobSpec spec_;
};

TEST_F(FromProto, DefaultsAreThoseOfTheContract) {
  const absl::StatusOr<GangRequest> request = ToGangRequest(spec_, cluster_.fabric());
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->slots, 4);
  EXPECT_EQ(request->ranks_per_slot, 8);
  EXPECT_TRUE(request->dimensions.empty());
  EXPECT_EQ(request->partition, "default");
}

TEST_F(FromProto, TiersByNameAndNumberAreTheSame) {
  spec_.mutable_constraints()->set_required_tier("pod");
  const Tier by_name = *ToGangRequest(spec_, cluster_.fabric())->required_tier;
  spec_.mutable_constraints()->set_required_tier("tier2");
  EXPECT_EQ(*ToGangRequest(spec_, cluster_.fabric())->required_tier, by_name);
}

TEST_F(FromProto, AnUnknownTierIsNamedWithThoseThereAre) {
  spec_.mutable_constraints()->set_required_tier("podd");
  EXPECT_THAT(Error(), ::testing::AllOf(HasSubstr("constraints.required_tier"), HasSubstr("podd"), HasSubstr("rack, pod, core")));
}

TEST_F(FromProto, DimensionsTakePatternsFromTheirNames) {
  Add("tp", 8);
  Add("pp", 2).set_wrap_bytes(3);
  Add("ep", 2);
  const absl::StatusOr<GangRequest> request = ToGangRequest(spec_, cluster_.fabric());
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->dimensions[0].pattern, Pattern::kRing);
  EXPECT_EQ(request->dimensions[1].pattern, Pattern::kChain);
  EXPECT_EQ(request->dimensions[1].wrap_bytes, 3);
  EXPECT_EQ(request->dimensions[2].pattern, Pattern::kAllToAll);
  EXPECT_EQ(request->dimensions[2].bytes, 1);
}

TEST_F(FromProto, DegreesMustMultiplyToTheRanks) {
  Add("dp", 5);
  EXPECT_THAT(Error(), HasSubstr("parallelism: the degrees multiply to 5, the gang has 32 ranks (4 hosts with 8 each)"));
}

TEST_F(FromProto, BadDimensionsNameTheField) {
  Add("xp", 32);
  EXPECT_THAT(Error(), HasSubstr("parallelism[0].name: no dimension 'xp'"));
  spec_.clear_parallelism();
  Add("dp", 0);
  EXPECT_THAT(Error(), HasSubstr("parallelism[0].degree"));
  spec_.clear_parallelism();
  Add("dp", 32).set_bytes(-1);
  EXPECT_THAT(Error(), HasSubstr("parallelism[0].bytes"));
  spec_.clear_parallelism();
  Add("dp", 32).set_bytes(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(Error(), HasSubstr("parallelism[0].bytes"));
  spec_.clear_parallelism();
  Add("dp", 32).set_wrap_bytes(1);
  EXPECT_THAT(Error(), HasSubstr("parallelism[0].wrap_bytes: is for pp only"));
  spec_.clear_parallelism();
  Add("dp", 4);
  Add("dp", 8);
  EXPECT_THAT(Error(), HasSubstr("parallelism[1].name: dp is given twice"));
}

TEST_F(FromProto, TooManyRanksAreRefusedBeforeAnythingIsAllocated) {
  spec_.set_nodes(1'000'000);
  spec_.set_ranks_per_node(1'000'000'000);
  EXPECT_THAT(Error(), HasSubstr("ranks_per_node"));
}

TEST_F(FromProto, UnknownHostsAreNamed) {
  spec_.mutable_constraints()->add_exclude("h[1-9]");
  EXPECT_THAT(Error(), HasSubstr("constraints.exclude[0]: no host 'h9'"));
}

TEST_F(FromProto, APlacementNamesTiersAndHosts) {
  const absl::StatusOr<Placement> placement = Place(cluster_, *ToGangRequest(spec_, cluster_.fabric()));
  ASSERT_TRUE(placement.ok());
  const v1::PlanResponse plan = ToPlanResponse(placement, cluster_.fabric());
  EXPECT_TRUE(plan.feasible());
  EXPECT_EQ(plan.hosts(0), "h1");
  EXPECT_EQ(plan.traffic_bytes().at("host"), 4);
  EXPECT_EQ(plan.traffic_bytes().at("rack"), 2);
  EXPECT_EQ(plan.traffic_bytes().at("pod"), 0);
  EXPECT_EQ(plan.domains().at("rack"), 2u);
  EXPECT_TRUE(plan.proven_optimal());
}

TEST_F(FromProto, AnInfeasiblePlanTellsTheNearest) {
  spec_.set_nodes(9);
  const v1::PlanResponse plan = ToPlanResponse(Place(cluster_, *ToGangRequest(spec_, cluster_.fabric())), cluster_.fabric());
  EXPECT_FALSE(plan.feasible());
  EXPECT_THAT(plan.why(), HasSubstr("can never fit: needs 9 hosts"));
  EXPECT_EQ(plan.nearest().nodes(), 8u);
}

}  // namespace
}  // namespace closeknit
