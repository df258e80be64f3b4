#include "proto/base/log.h"

#include <unistd.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace closeknit {
namespace {

std::atomic<LogLevel> minimum_level{LogLevel::kInfo};
std::atomic<LogFormat> log_format{LogFormat::kText};

absl::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

// A JSON string; also a valid logfmt value.
std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppend(&quoted, "\\u", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad4));
    } else {
      quoted += c;
    }
  }
  quoted += '"';
  return quoted;
}

bool IsPlain(absl::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7f) return false;
  }
  return true;
}

}  // namespace

void SetLog(LogLevel minimum, LogFormat format) {
  minimum_level = minimum;
  log_format = format;
}

void Log(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields) {
  if (level < minimum_level.load()) return;
  const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  std::string line;
  if (log_format.load() == LogFormat::kJson) {
    line = absl::StrCat("{\"time\":\"", time, "\",\"level\":\"", LevelName(level), "\",\"msg\":", Quoted(message));
    for (const auto& [key, value] : fields) absl::StrAppend(&line, ",", Quoted(key), ":", Quoted(value));
    line += "}\n";
  } else {
    line = absl::StrCat("time=", time, " level=", LevelName(level), " msg=", Quoted(message));
    for (const auto& [key, value] : fields) {
      absl::StrAppend(&line, " ", key, "=", IsPlain(value) ? value : Quoted(value));
    }
    line += '\n';
  }
  // One write call a line: lines of several threads and processes never mix. A log that cannot be written has nowhere to complain.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace closeknit
