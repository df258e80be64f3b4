// Writes chunks of several ranks' logs to one stream, whole lines at a time.
#ifndef CLOSEKNIT_CLIENT_LOGS_COMMAND_H_
#define CLOSEKNIT_CLIENT_LOGS_COMMAND_H_

#include <map>
#include <ostream>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "closeknit/v1/logs.pb.h"

namespace closeknit {

class LogWriter {
 public:
  // With `prefix`, "rank N: " goes before each line; without it lines of ranks still never mix.
  LogWriter(std::ostream* out, bool prefix) : out_(out), prefix_(prefix) {}
  void Write(const v1::StreamLogsResponse& chunk);
  // Writes lines that never got their newline.
  void Finish();

 private:
  void Line(uint32_t rank, absl::string_view line);

  std::ostream* const out_;
  const bool prefix_;
  std::map<std::pair<uint32_t, uint32_t>, std::string> partial_;  // (attempt, rank) -> bytes after the last newline; at most kMaxPartial
};

}  // namespace closeknit

#endif  // CLOSEKNIT_CLIENT_LOGS_COMMAND_H_
