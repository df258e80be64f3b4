#include "proto/base/host_list.h"

#include <algorithm>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace closeknit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Expand(absl::string_view list) { return ExpandHostList(list).value(); }

TEST(HostList, ExpandsRangesInTheOrderWritten) {
  EXPECT_THAT(Expand("h[1-3,7]"), ElementsAre("h1", "h2", "h3", "h7"));
  EXPECT_THAT(Expand("b2, a1"), ElementsAre("b2", "a1"));
  EXPECT_THAT(Expand(""), ElementsAre());
}

TEST(HostList, LastBracketVariesFastest) {
  EXPECT_THAT(Expand("p[1-2]r[01-02].lan"), ElementsAre("p1r01.lan", "p1r02.lan", "p2r01.lan", "p2r02.lan"));
}

TEST(HostList, ZeroPaddingIsPartOfTheName) {
  EXPECT_THAT(Expand("h[008-011]"), ElementsAre("h008", "h009", "h010", "h011"));
  EXPECT_EQ(FoldHostSet({"h1", "h001", "h002"}), "h[1,001-002]");
  EXPECT_EQ(FoldHostSet({"h10", "h9"}), "h[9-10]");
}

TEST(HostList, ErrorsNamePositionAndFault) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"h[1-3", "']'"},
      {"h[]", "expected a number"},
      {"h[3-1]", "runs down"},
      {"h[1-]", "expected a number"},
      {"h1]", "unexpected ']'"},
      {"h[a]", "expected a number"},
      {"h[0-99999999]", "more than 1000000 hosts"},
      {"h[1-1000][1-1001]", "more than 1000000 hosts"},
      {"h[1234567890123456789]", "digits"},
      {"h\xff", "0xff"},
      {"a b;c", "position 4"},
      {"h[1 2]", "expected ','"},
      {std::string(254, 'h'), "more than 253 characters"},
      {std::string(200, 'h') + "[1-2]" + std::string(60, 'h'), "more than 253 characters"},
  };
  for (const auto& [list, message] : cases) {
    const auto result = ExpandHostList(list);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << list;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(message)) << list;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("position ")) << list;
  }
}

TEST(HostList, GivesTheOffsetOfAnError) {
  size_t offset = 0;
  EXPECT_EQ(ExpandHostList("a b;c", &offset).status().message(), "unexpected ';'; host names are letters, digits, '-', '_' and '.'");
  EXPECT_EQ(offset, 3u);
}

TEST(HostList, FoldKeepsTheOrderOfAPlacement) {
  EXPECT_EQ(FoldHostList({"h1", "h3", "h2", "h4"}), "h[1,3,2,4]");
  EXPECT_EQ(FoldHostList({"a1", "b1", "a2"}), "a1,b1,a2");
  EXPECT_EQ(FoldHostList({"login", "h1"}), "login,h1");
  EXPECT_EQ(FoldHostList({"h1", "h1"}), "h[1,1]");
}

TEST(HostList, SetsAreSortedCompressedAndReadBack) {
  EXPECT_EQ(FoldHostSet({"h7", "h2", "h1", "h3", "h2"}), "h[1-3,7]");
  EXPECT_EQ(FoldHostSet({"r10h1", "r2h1", "r2h2"}), "r2h[1-2],r10h1");
}

TEST(HostList, WhateverIsFoldedExpandsToTheSameNames) {
  std::mt19937 random(7);
  const std::vector<std::string> stems = {"h", "r1h", "r02-", "x.lan", "9"};
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> hosts;
    const int size = static_cast<int>(random() % 12);
    for (int i = 0; i < size; ++i) {
      std::string number = std::to_string(random() % 30);
      while (number.size() < random() % 4) number.insert(0, "0");
      hosts.push_back(stems[random() % stems.size()] + number + (random() % 5 == 0 ? ".lan" : ""));
    }
    EXPECT_EQ(Expand(FoldHostList(hosts)), hosts) << FoldHostList(hosts);
    std::sort(hosts.begin(), hosts.end());
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
    std::vector<std::string> back = Expand(FoldHostSet(hosts));
    std::sort(back.begin(), back.end());
    EXPECT_EQ(back, hosts);
  }
}

}  // namespace
}  // namespace closeknit
