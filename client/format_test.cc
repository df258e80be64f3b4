#include "client/format.h"

#include "gtest/gtest.h"

namespace closeknit {
namespace {

TEST(Table, ColumnsFitAndLinesHaveNoTrailingSpace) {
  Table table({{"JOB", Align::kRight}, {"NAME"}, {"STATE"}});
  table.Row({"7", "Größe", "running"});
  table.Row({"4711", "x", ""});
  EXPECT_EQ(table.Render(true),
            " JOB  NAME   STATE\n"
            "   7  Größe  running\n"
            "4711  x\n");
  EXPECT_EQ(table.Render(false),
            "   7  Größe  running\n"
            "4711  x\n");
}

TEST(Table, NamesCannotDriveTheTerminal) {
  Table table({{"NAME"}});
  table.Row({"evil\x1b[2J\n"});
  EXPECT_EQ(table.Render(false), "evil?[2J?\n");
}

TEST(Format, Durations) {
  EXPECT_EQ(ClockDuration(absl::Seconds(5)), "0:05");
  EXPECT_EQ(ClockDuration(absl::Seconds(3661)), "1:01:01");
  EXPECT_EQ(ClockDuration(absl::Hours(49)), "2-01:00:00");
  EXPECT_EQ(ClockDuration(absl::InfiniteDuration()), "-");
}

TEST(Format, Bytes) {
  EXPECT_EQ(BytesText(0), "0");
  EXPECT_EQ(BytesText(14.47e12), "14.47 TB");
  EXPECT_EQ(BytesText(999.99), "1 kB");
  EXPECT_EQ(BytesText(12), "12 B");
}

TEST(Format, Verdicts) {
  v1::ExitVerdict verdict;
  verdict.set_cause(v1::END_CAUSE_RANK_EXIT);
  verdict.set_rank(5);
  verdict.set_exit_code(3);
  verdict.set_node("h3");
  EXPECT_EQ(VerdictText(verdict), "rank 5 exited with code 3 on h3");
  EXPECT_EQ(StateName(v1::JOB_STATE_TIMED_OUT), "timed-out");
}

}  // namespace
}  // namespace closeknit
