// What all formats share. Each format has its own test in readers/.
#include "cluster_model/readers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cluster_model/readers/source.h"

namespace closeknit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Error(absl::string_view contents) {
  const absl::StatusOr<Fabric> fabric = ReadFabric(contents, "f");
  EXPECT_EQ(fabric.status().code(), absl::StatusCode::kInvalidArgument) << fabric.status();
  return std::string(fabric.status().message());
}

Fabric Read(absl::string_view contents) {
  absl::StatusOr<Fabric> fabric = ReadFabric(contents, "f");
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  return *std::move(fabric);
}

TEST(DetectFabricFormat, TellsByTheContents) {
  EXPECT_EQ(DetectFabricFormat("name: lab\nfabric: []\n"), FabricFormat::kYaml);
  EXPECT_EQ(DetectFabricFormat("# a comment\n\n---\nfabric:\n"), FabricFormat::kYaml);
  EXPECT_EQ(DetectFabricFormat("{fabric: []}"), FabricFormat::kYaml);
  EXPECT_EQ(DetectFabricFormat("# SwitchName=x\nSwitchName=s1 Nodes=h1\n"), FabricFormat::kSlurmConf);
  EXPECT_EQ(DetectFabricFormat("\xef\xbb\xbfswitchname=s1 nodes=h1\r\n"), FabricFormat::kSlurmConf);
  EXPECT_EQ(DetectFabricFormat("Nodes=h1 SwitchName=s1\n"), FabricFormat::kSlurmConf);
  EXPECT_EQ(DetectFabricFormat("---\n- topology: t\n  tree: {}\n"), FabricFormat::kSlurmYaml);
  EXPECT_EQ(DetectFabricFormat("#\n# Topology file: generated on Mon\n#\nvendid=0x2c9\n"), FabricFormat::kIbNetDiscover);
  EXPECT_EQ(DetectFabricFormat(""), FabricFormat::kYaml);
  EXPECT_EQ(DetectFabricFormat("nonsense"), FabricFormat::kYaml);
}

TEST(ReadFabric, RefusesWhatIsNotUtf8InEveryFormat) {
  for (const absl::string_view start :
       {"name: a\nfabric:  ", "SwitchName=s1\n#        ", "- topology: a\n#        ", "vendid=0x2c9\n#        "}) {
    EXPECT_THAT(Error(absl::StrCat(start, "\xff\n")), HasSubstr("f:2:10: byte 0xff is not UTF-8; save the file as UTF-8"));
    EXPECT_THAT(Error(absl::StrCat(start, "\xc0\xaf\n")), HasSubstr("f:2:10: byte 0xc0 is not UTF-8"));
    EXPECT_THAT(Error(absl::StrCat(start, absl::string_view("\0", 1), "\n")), HasSubstr("f:2:10: control character 0x00"));
  }
}

TEST(ReadFabric, TakesTheMarksThatEditorsLeave) {
  EXPECT_EQ(Read("\xef\xbb\xbf"
                 "fabric:\r\n  - {rack: r1, host: \"h[1-2]\"}\r\n")
                .hosts()
                .size(),
            2u);
  EXPECT_EQ(Read("\xef\xbb\xbf"
                 "SwitchName=r1 Nodes=h[1-2]\r\n")
                .hosts()
                .size(),
            2u);
}

TEST(ReadFabric, ReportsAllErrorsOfAFileInItsOrder) {
  EXPECT_EQ(Error("SwitchName=a Nodes=h[1-\nSwitchName=b Nodes=h3 Color=red\n"),
            "f:1:24: expected a number in brackets\n"
            "f:2:23: unknown key 'Color'; known: SwitchName, Switches, Nodes, LinkSpeed");
}

TEST(ReadFabric, CountsErrorsBeyondTheFirstTwenty) {
  std::string conf;
  for (int i = 0; i < 50; ++i) absl::StrAppend(&conf, "SwitchName=s", i, "\n");
  const std::vector<std::string> lines = absl::StrSplit(Error(conf), '\n');
  EXPECT_EQ(lines.size(), 21u);
  EXPECT_EQ(lines.back(), "f: and 30 more errors");
}

TEST(ReadFabric, FewBytesNeverCostMuch) {
  const absl::Time start = absl::Now();
  EXPECT_THAT(Error("SwitchName=a Nodes=h[1-999999999]\n"), HasSubstr("f:1:33: more than 1000000 hosts"));
  EXPECT_THAT(Error("SwitchName=a Nodes=h[1-9999][1-9999][1-9999]\n"), HasSubstr("more than 1000000 hosts"));
  EXPECT_THAT(Error(absl::StrCat("SwitchName=a Nodes=", std::string(100000, 'h'), "[1-1000000]\n")), HasSubstr("more than 253 characters"));
  std::string conf;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&conf, "SwitchName=s", i, " Nodes=s", i, "h[1-1000000]\n");
  EXPECT_THAT(Error(conf), HasSubstr("names more than 2000000 domains and hosts"));
  EXPECT_THAT(Error("fabric:\n  - {pod: \"p[1-1000]\", rack: \"{pod}r[1-1000]\", host: \"{rack}h[1-1000]\"}\n"),
              HasSubstr("names more than 2000000 domains and hosts"));
  EXPECT_THAT(Error(std::string(20000, '[')), HasSubstr("nested deeper than 16 levels"));
  EXPECT_THAT(Error("a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n"), HasSubstr("f:2:8: aliases (*name) are not supported"));
  EXPECT_LT(absl::Now() - start, absl::Seconds(120));  // 1 s on an idle machine, 20 s with sanitizers
}

TEST(ReadFabric, RefusesAFileOfMoreThan64MiB) {
  EXPECT_THAT(Error(std::string(kMaxDescriptionBytes + 1, '#')), HasSubstr("has 67108865 bytes; at most 67108864 are read"));
}

TEST(ReadFabric, ReadsAWholeEstateInNoTime) {
  std::string conf;
  for (int rack = 0; rack < 1536; ++rack) absl::StrAppend(&conf, "SwitchName=r", rack, " Nodes=r", rack, "h[1-2]\n");
  for (int pod = 0; pod < 8; ++pod) absl::StrAppend(&conf, "SwitchName=p", pod, " Switches=r[", pod * 192, "-", pod * 192 + 191, "]\n");
  absl::StrAppend(&conf, "SwitchName=core Switches=p[0-7]\n");
  absl::Time start = absl::Now();
  EXPECT_EQ(Read(conf).hosts().size(), 3072u);
  // Goals on an idle machine: 20 ms and 300 ms. The bounds here hold with sanitizers on a busy one.
  EXPECT_LT(absl::Now() - start, absl::Seconds(1));
  start = absl::Now();
  EXPECT_EQ(Read("fabric:\n  - {pod: \"p[1-125]\", rack: \"{pod}r[001-175]\", host: \"{rack}h[1-2]\"}\n").hosts().size(), 43750u);
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST(CompareFabrics, ShowsWhatCameWentAndMoved) {
  const Fabric before =
      Read("fabric:\n  - {rack: r1, host: \"h[1-2]\"}\n  - {rack: r2, host: \"h[3-4]\"}\n  - {rack: r3, host: \"h[5-6]\"}\n");
  const Fabric after = Read(
      "fabric:\n  - {rack: r4, host: \"h[7-8]\"}\n  - {rack: r2, host: \"h[2-3]\"}\n  - {rack: r3, host: h5, gpus: 4}\n"
      "  - {rack: r3, host: h6}\n");
  const FabricDiff diff = CompareFabrics(before, after);
  EXPECT_THAT(diff.added, ElementsAre("h7", "h8"));
  EXPECT_THAT(diff.removed, ElementsAre("h1", "h4"));
  EXPECT_THAT(diff.moved, ElementsAre("h2", "h5"));
}

TEST(CompareFabrics, TheNameOfTheRootMovesNobody) {
  const Fabric before = Read("name: a\nfabric:\n  - {rack: \"r[1-2]\", host: \"{rack}h[1-2]\"}\n");
  const Fabric after = Read("name: b\nfabric:\n  - {rack: \"r[1-3]\", host: \"{rack}h[1-2]\"}\n");
  const FabricDiff diff = CompareFabrics(before, after);
  EXPECT_THAT(diff.added, ElementsAre("r3h1", "r3h2"));
  EXPECT_THAT(diff.moved, ElementsAre());
}

TEST(CompareFabrics, ATierThatIsPutBetweenMovesEverybody) {
  const Fabric before = Read("fabric:\n  - {rack: \"r[1-2]\", host: \"{rack}h1\"}\n");
  const Fabric after = Read("fabric:\n  - {pod: \"p[1-2]\", rack: \"r[1-2]\", host: \"{rack}h1\"}\n");
  EXPECT_THAT(CompareFabrics(before, after).moved, ElementsAre("r1h1", "r2h1"));
}

}  // namespace
}  // namespace closeknit
