#include "client/sbatch_script.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace closeknit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(SbatchScript, HonoursWhatMapsAndNamesTheRest) {
  const auto script = *ReadSbatchScript(
      "#!/bin/bash\n"
      "#SBATCH -N 4 -J pretrain\n"
      "#SBATCH --gres=gpu:h100:8 --time=1-12\n"
      "#SBATCH --ntasks=32   # one a GPU\n"
      "#SBATCH --comment=\"two words\" --mail-type END --requeue\n"
      "\n"
      "# a comment\n"
      "srun train.py\n"
      "#SBATCH --nodes=99\n",
      "job.sh");
  EXPECT_THAT(script.flags,
              UnorderedElementsAre(Pair("nodes", "4"), Pair("job-name", "pretrain"), Pair("gpus-per-node", "8"), Pair("time", "1-12"),
                                   Pair("ranks-per-node", "8"), Pair("comment", "two words"), Pair("restart", "gang")));
  EXPECT_THAT(script.warnings, ElementsAre("job.sh:5: --mail-type is ignored: it has no counterpart"));
}

TEST(SbatchScript, LettersWithTheirValueAttached) {
  const auto script = *ReadSbatchScript("#!/bin/sh\n#SBATCH -N4 -t30 -wh[1-4] -H\n", "x");
  EXPECT_THAT(script.flags, UnorderedElementsAre(Pair("nodes", "4"), Pair("time", "30"), Pair("nodelist", "h[1-4]"), Pair("hold", "")));
}

TEST(SbatchScript, TotalsMustDivideOverTheNodes) {
  EXPECT_THAT(ReadSbatchScript("#!/bin/sh\n#SBATCH -N 2 --gpus=16\n", "x")->flags, testing::Contains(Pair("gpus-per-node", "8")));
  EXPECT_THAT(std::string(ReadSbatchScript("#!/bin/sh\n#SBATCH -N 3 -n 8\n", "x").status().message()), HasSubstr("--ntasks=8"));
}

TEST(SbatchScript, ErrorsNameFileAndLine) {
  EXPECT_THAT(std::string(ReadSbatchScript("echo hi\n", "x.sh").status().message()), HasSubstr("x.sh:1:1"));
  EXPECT_THAT(std::string(ReadSbatchScript("#!/bin/sh\n#SBATCH --nodes\n", "x.sh").status().message()),
              HasSubstr("x.sh:2: --nodes needs a value"));
  EXPECT_THAT(std::string(ReadSbatchScript("#!/bin/sh\n\n#SBATCH what\n", "x.sh").status().message()), HasSubstr("x.sh:3: 'what'"));
}

TEST(SbatchScript, OneSwitchIsOneRack) {
  EXPECT_THAT(ReadSbatchScript("#!/bin/sh\n#SBATCH --switches=1\n", "x")->flags, UnorderedElementsAre(Pair("require", "tier1")));
  EXPECT_EQ(ReadSbatchScript("#!/bin/sh\n#SBATCH --switches=2\n", "x")->warnings.size(), 1u);
}

}  // namespace
}  // namespace closeknit
