#include "client/submit_flags.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace closeknit {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(SubmitFlags, DescribeAJob) {
  v1::JobSpec spec;
  ASSERT_TRUE(ApplyFlags({{"nodes", "4"},
                          {"gpus-per-node", "8"},
                          {"time", "1:00"},
                          {"parallelism", "tp=8,dp=4"},
                          {"bytes", "dp=1G"},
                          {"max-domains", "pod=2"},
                          {"constraint", "h100&nvme"},
                          {"restart", "gang"},
                          {"max-restarts", "5"},
                          {"priority", "-7"},
                          {"hold", ""}},
                         &spec)
                  .ok());
  EXPECT_EQ(spec.nodes(), 4u);
  EXPECT_EQ(spec.time_limit().seconds(), 60);
  EXPECT_EQ(spec.parallelism(1).bytes(), 1e9);
  EXPECT_EQ(spec.constraints().max_domains().at("pod"), 2u);
  EXPECT_EQ(spec.constraints().features_size(), 2);
  EXPECT_EQ(spec.restart().max_restarts(), 5u);
  EXPECT_EQ(spec.priority(), -7);
  EXPECT_TRUE(spec.hold());
}

TEST(SubmitFlags, ErrorsNameTheFlagAndWhatIsAccepted) {
  const std::vector<std::pair<FlagValues, std::string>> cases = {
      {{{"nodes", "-1"}}, "--nodes: '-1' is no whole number"},
      {{{"time", "soon"}}, "--time: 'soon' is no time"},
      {{{"restart", "always"}}, "--restart: 'always' is not accepted; accepted are never"},
      {{{"bytes", "dp=1"}}, "--bytes: needs --parallelism"},
      {{{"max-domains", "pod"}}, "--max-domains: 'pod' is not of the form name=value"},
  };
  for (const auto& [flags, message] : cases) {
    v1::JobSpec spec;
    EXPECT_THAT(std::string(ApplyFlags(flags, &spec).message()), HasSubstr(message));
  }
}

TEST(Export, AllLeavesOutWhatTheServerRefusesAndTheShellsOwn) {
  const std::vector<std::pair<std::string, std::string>> environment = {{"HOME", "/home/ada"}, {"RANK", "3"},   {"KNIT_SCHEDULER", "x:1"},
                                                                        {"PWD", "/"},          {"BAD", "\xff"}, {"BASH_FUNC_f%%", "() {}"},
                                                                        {"LANG", "C"}};
  EXPECT_THAT(*ExportedEnvironment("ALL", environment), UnorderedElementsAre(Pair("HOME", "/home/ada"), Pair("LANG", "C")));
  EXPECT_THAT(*ExportedEnvironment("NONE", environment), UnorderedElementsAre());
  EXPECT_THAT(*ExportedEnvironment("LANG,X=a=b,GONE", environment), UnorderedElementsAre(Pair("LANG", "C"), Pair("X", "a=b")));
  EXPECT_THAT(std::string(ExportedEnvironment("MASTER_PORT=1", environment).status().message()), HasSubstr("MASTER_PORT"));
}

}  // namespace
}  // namespace closeknit
