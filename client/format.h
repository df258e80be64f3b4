// Text for people: tables, times, states, colours. Pure.
#ifndef CLOSEKNIT_CLIENT_FORMAT_H_
#define CLOSEKNIT_CLIENT_FORMAT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "closeknit/v1/types.pb.h"

namespace closeknit {

enum class Align { kLeft, kRight };

// Columns as wide as their widest cell; two spaces between; no trailing spaces. Cells may hold UTF-8; control characters are shown as '?'.
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void Row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string Render(bool with_header) const;  // NOLINT: mirrors --no-headers

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "1-02:03:04", "2:03", as squeue: days only where there are some. "-" for negative or infinite ones.
std::string ClockDuration(absl::Duration duration);
// Local time, "2026-11-30 21:04:52"; "-" for unset.
std::string ClockTime(absl::Time time);
// "14.47 TB", decimal units, three or four digits; "0".
std::string BytesText(double bytes);
// "running", "idle": the enum's name without its prefix, in small letters, '_' as '-'.
std::string StateName(v1::JobState state);
std::string StateName(v1::NodeState state);
bool HasEnded(v1::JobState state);
// How the job ended, in one line: "failed: rank 5 on h3 exited with code 3".
std::string VerdictText(const v1::ExitVerdict& verdict);
// "12" or "10_2" for task 2 of array 10.
std::string JobLabel(const v1::Job& job);

// Control characters replaced by '?': what comes from users must not drive the reader's terminal.
std::string Printable(absl::string_view text);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLIENT_FORMAT_H_
