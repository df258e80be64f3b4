#include "client/format.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace closeknit {
namespace {

// Code points, which is near enough to columns for names and states.
size_t Width(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

std::string EnumText(const std::string& name, absl::string_view prefix) {
  return absl::AsciiStrToLower(absl::StrReplaceAll(absl::StripPrefix(name, prefix), {{"_", "-"}}));
}

void AppendCell(absl::string_view cell, size_t width, Align align, std::string* line) {
  const size_t cell_width = Width(cell);
  const std::string padding(width > cell_width ? width - cell_width : 0, ' ');
  align == Align::kRight ? absl::StrAppend(line, padding, cell) : absl::StrAppend(line, cell, padding);
}

}  // namespace

std::string Printable(absl::string_view text) {
  std::string printable(text);
  for (char& c : printable) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return printable;
}

std::string Table::Render(bool with_header) const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(with_header ? Width(column.title) : 0);
  std::vector<std::vector<std::string>> rows = rows_;
  for (auto& row : rows) {
    row.resize(columns_.size());
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = Printable(row[i]);
      widths[i] = std::max(widths[i], Width(row[i]));
    }
  }
  std::string text;
  const auto append = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      AppendCell(row[i], widths[i], columns_[i].align, &line);
    }
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  };
  if (with_header) {
    std::vector<std::string> titles;
    for (const Column& column : columns_) titles.push_back(column.title);
    append(titles);
  }
  for (const auto& row : rows) append(row);
  return text;
}

std::string ClockDuration(absl::Duration duration) {
  if (duration < absl::ZeroDuration() || duration == absl::InfiniteDuration()) return "-";
  const int64_t total = absl::ToInt64Seconds(duration);
  const int64_t days = total / 86400, hours = total / 3600 % 24, minutes = total / 60 % 60, seconds = total % 60;
  if (days > 0) return absl::StrFormat("%d-%02d:%02d:%02d", days, hours, minutes, seconds);
  if (hours > 0) return absl::StrFormat("%d:%02d:%02d", hours, minutes, seconds);
  return absl::StrFormat("%d:%02d", minutes, seconds);
}

std::string ClockTime(absl::Time time) {
  if (time <= absl::UnixEpoch() || time == absl::InfiniteFuture()) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::LocalTimeZone());
}

std::string BytesText(double bytes) {
  if (bytes == 0) return "0";
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  size_t unit = 0;
  while (bytes >= 999.95 && unit + 1 < std::size(kUnits)) {
    bytes /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.4g %s", bytes, kUnits[unit]);
}

std::string StateName(v1::JobState state) { return EnumText(v1::JobState_Name(state), "JOB_STATE_"); }
std::string StateName(v1::NodeState state) { return EnumText(v1::NodeState_Name(state), "NODE_STATE_"); }

bool HasEnded(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_COMPLETED:
    case v1::JOB_STATE_FAILED:
    case v1::JOB_STATE_CANCELLED:
    case v1::JOB_STATE_TIMED_OUT:
    case v1::JOB_STATE_PREEMPTED:
      return true;
    default:
      return false;
  }
}

std::string VerdictText(const v1::ExitVerdict& verdict) {
  if (!verdict.message().empty()) return Printable(verdict.message());
  std::string text = EnumText(v1::EndCause_Name(verdict.cause()), "END_CAUSE_");
  if (verdict.cause() == v1::END_CAUSE_RANK_EXIT) text = absl::StrCat("rank ", verdict.rank(), " exited with code ", verdict.exit_code());
  if (verdict.cause() == v1::END_CAUSE_RANK_SIGNAL)
    text = absl::StrCat("rank ", verdict.rank(), " was killed by signal ", verdict.signal());
  if (!verdict.node().empty()) absl::StrAppend(&text, " on ", verdict.node());
  return text;
}

std::string JobLabel(const v1::Job& job) {
  return job.array_job_id() == 0 ? absl::StrCat(job.job_id()) : absl::StrCat(job.array_job_id(), "_", job.array_task_id());
}

}  // namespace closeknit
