#include "client/job_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace closeknit {
namespace {

using ::testing::HasSubstr;

TEST(JobFile, AllKindsOfFields) {
  const v1::JobSpec spec = *ReadJobFile(
      "name: pretrain\n"
      "nodes: 128\n"
      "gpus_per_node: 8\n"
      "command: [python3, train.py]\n"
      "time_limit: 1-12:00:00\n"
      "parallelism: {tp: 8, pp: 16, dp: 8}\n"
      "constraints: {required_tier: pod, max_domains: {pod: 2}, exclude: h7}\n"
      "restart: {mode: gang, max_restarts: 5}\n"
      "environment: {NCCL_DEBUG: INFO}\n"
      "hold: yes\n",
      "job.yaml");
  EXPECT_EQ(spec.nodes(), 128u);
  EXPECT_EQ(spec.command(1), "train.py");
  EXPECT_EQ(spec.time_limit().seconds(), 36 * 3600);
  EXPECT_EQ(spec.parallelism(1).name(), "pp");
  EXPECT_EQ(spec.constraints().max_domains().at("pod"), 2u);
  EXPECT_EQ(spec.constraints().exclude(0), "h7");
  EXPECT_EQ(spec.restart().mode(), v1::RESTART_MODE_GANG);
  EXPECT_EQ(spec.environment().at("NCCL_DEBUG"), "INFO");
  EXPECT_TRUE(spec.hold());
}

TEST(JobFile, ErrorsNameThePlaceAndTheFix) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"nodes: 4\nnoeds: 5\n", "j:2:1: unknown key 'noeds'; did you mean 'nodes'?"},
      {"nodes: 4\nnodes: 5\n", "j:2:1: 'nodes' is given twice"},
      {"nodes: many\n", "j:1:8: 'nodes' needs a whole number"},
      {"restart: {mode: often}\n", "j:1:17: 'often' is not accepted; accepted are never, gang"},
      {"time_limit: soon\n", "j:1:13: 'soon' is no time"},
      {"nodes: [1]\n", "j:1:8: 'nodes' needs one value"},
      {"a: [\n", "not YAML"},
      {"- 1\n", "expected 'key: value' lines"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(std::string(ReadJobFile(text, "j").status().message()), HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace closeknit
