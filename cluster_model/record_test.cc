#include "cluster_model/record.h"

#include <gtest/gtest.h>

#include <set>

namespace closeknit {
namespace {

TEST(Record, JobKeysSortAsIds) {
  const JobId ids[] = {0, 1, 255, 256, 65535, 65536, uint64_t{1} << 40, ~uint64_t{0}};
  for (size_t i = 1; i < std::size(ids); ++i) EXPECT_LT(JobKey(ids[i - 1]), JobKey(ids[i]));
  EXPECT_EQ(JobKey(0x0102030405060708), "\x01\x02\x03\x04\x05\x06\x07\x08");
}

TEST(Record, RequestKeysOfDifferentUsersNeverMeet) {
  EXPECT_EQ(RequestKey("ann", "7"), std::string("ann\0"
                                                "7",
                                                5));
  EXPECT_NE(RequestKey("ann", "b"), RequestKey("annb", ""));
}

TEST(Record, TablesHaveDifferentNames) {
  std::set<std::string> names;
  for (const Table table : kAllTables) names.insert(std::string(TableName(table)));
  EXPECT_EQ(names.size(), std::size(kAllTables));
}

}  // namespace
}  // namespace closeknit
