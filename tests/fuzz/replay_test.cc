// The fuzzers' targets on recorded inputs: seeds, and what once failed. Runs everywhere; the fuzzers need clang.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/fuzz/targets.h"

namespace closeknit {
namespace {

// Runs `target` on every file in a folder of the source tree; returns how many there were.
int Replay(const std::string& folder, void (*target)(absl::string_view)) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(CLOSEKNIT_SOURCE_DIR) + "/" + folder)) {
    if (!entry.is_regular_file()) continue;
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    std::stringstream contents;
    contents << file.rdbuf();
    target(contents.str());
    ++files;
  }
  return files;
}

TEST(Replay, Fabric) {
  EXPECT_GT(Replay("tests/data/fuzz/fabric", FuzzFabric), 20);
  EXPECT_GT(Replay("deploy/topologies", FuzzFabric), 5);
}

TEST(Replay, HostList) { EXPECT_GT(Replay("tests/data/fuzz/host_list", FuzzHostList), 10); }

}  // namespace
}  // namespace closeknit
