#include "client/flag_values.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace closeknit {
namespace {

using ::testing::HasSubstr;

TEST(TimeLimit, AllOfSlurmsForms) {
  const std::vector<std::pair<std::string, absl::Duration>> cases = {
      {"30", absl::Minutes(30)},
      {"1:30", absl::Seconds(90)},
      {"2:00:01", absl::Hours(2) + absl::Seconds(1)},
      {"1-12", absl::Hours(36)},
      {"1-0:30", absl::Hours(24) + absl::Minutes(30)},
      {"2-01:02:03", absl::Hours(49) + absl::Minutes(2) + absl::Seconds(3)},
      {"90s", absl::Seconds(90)},
      {"1h30m", absl::Minutes(90)},
      {"unlimited", absl::InfiniteDuration()},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(*ParseTimeLimit(text), expected) << text;
  for (const std::string bad : {"", "0", "-1", "1:2:3:4", "a", "1-", "99999999999", "-5s", "1-2-3"}) {
    EXPECT_EQ(ParseTimeLimit(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(Bytes, DecimalAndBinaryUnits) {
  EXPECT_EQ(*ParseBytes("1.5e9"), 1.5e9);
  EXPECT_EQ(*ParseBytes("512M"), 512e6);
  EXPECT_EQ(*ParseBytes("16GiB"), 16.0 * (1 << 30));
  for (const std::string bad : {"", "M", "-1", "nan", "inf", "1i", "1X"}) EXPECT_FALSE(ParseBytes(bad).ok()) << bad;
}

TEST(Parallelism, DegreesKeepTheirOrderAndBytesFindTheirDimension) {
  const auto dimensions = *ParseParallelism("tp=8,pp=16,dp=128", "dp=18.8G,pp=537M,pp_wrap=1G");
  ASSERT_EQ(dimensions.size(), 3u);
  EXPECT_EQ(dimensions[0].name(), "tp");
  EXPECT_EQ(dimensions[1].bytes(), 537e6);
  EXPECT_EQ(dimensions[1].wrap_bytes(), 1e9);
  EXPECT_EQ(dimensions[2].degree(), 128u);
  EXPECT_THAT(std::string(ParseParallelism("tp=8", "dp=1").status().message()), HasSubstr("dp"));
  EXPECT_THAT(std::string(ParseParallelism("tp=8,tp=2", "").status().message()), HasSubstr("twice"));
  EXPECT_FALSE(ParseParallelism("tp", "").ok());
}

TEST(Dependencies, AsInSbatch) {
  const auto dependencies = *ParseDependencies("afterok:12:13,afterany:14");
  ASSERT_EQ(dependencies.size(), 3u);
  EXPECT_EQ(dependencies[1].job_id(), 13u);
  EXPECT_EQ(dependencies[2].type(), v1::DEPENDENCY_TYPE_AFTER_ANY);
  EXPECT_EQ(ParseDependencies("7")->front().type(), v1::DEPENDENCY_TYPE_AFTER_OK);
  EXPECT_THAT(std::string(ParseDependencies("singleton:1").status().message()), HasSubstr("afterok"));
  EXPECT_FALSE(ParseDependencies("afterok:x").ok());
  EXPECT_FALSE(ParseDependencies("afterok:0").ok());
}

}  // namespace
}  // namespace closeknit
