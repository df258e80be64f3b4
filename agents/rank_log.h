// One rank's output on disk: segments named by the offset of their first byte, so that an offset means the same whatever was removed.
//
//   LOGS/rank-17.00000000000000000000.log    complete: the next segment's name tells where it ends
//   LOGS/rank-17.00000000000067108864.log    the last one grows
//
// Written by knit-shim, read by knit-agent at the same time, and after both have died.
#ifndef CLOSEKNIT_AGENTS_RANK_LOG_H_
#define CLOSEKNIT_AGENTS_RANK_LOG_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/files.h"

namespace closeknit {

// Of the lines that a verdict shows.
inline constexpr size_t kMaxLastLines = 20;
inline constexpr size_t kMaxLastLineBytes = 4 << 10;

struct RankLogLimits {
  uint64_t max_bytes = 64 << 20;  // of a segment; it ends at the last line that fits, or in the middle of a longer line
  uint32_t max_files = 3;         // complete segments that are kept besides the growing one
};

class RankLog {
 public:
  // Starts an empty log. The directory must be there.
  static absl::StatusOr<RankLog> Create(const std::string& directory, uint32_t rank, RankLogLimits limits);

  // Never fails: what the disk does not take is dropped and counted, and a line says so once it takes bytes again.
  void Append(absl::string_view bytes);

  uint64_t size() const { return segment_start_ + segment_bytes_; }  // bytes written since the start
  uint64_t dropped_bytes() const { return dropped_; }
  // At most kMaxLastLines of at most kMaxLastLineBytes, oldest first, without their newlines, as valid UTF-8.
  std::vector<std::string> LastLines() const;

 private:
  RankLog(std::string directory, uint32_t rank, RankLogLimits limits) : directory_(std::move(directory)), rank_(rank), limits_(limits) {}
  absl::Status OpenSegment();
  void Write(absl::string_view bytes);
  bool WriteToDisk(absl::string_view bytes);
  void Remember(absl::string_view bytes);

  std::string directory_;
  uint32_t rank_;
  RankLogLimits limits_;
  OwnedFd file_;
  uint64_t segment_start_ = 0, segment_bytes_ = 0;
  std::deque<uint64_t> complete_;  // starts of complete segments, oldest first
  uint64_t dropped_ = 0, dropped_unsaid_ = 0;
  std::deque<std::string> lines_;  // the last may be unfinished
  bool line_open_ = false;
};

// A part of a log.
struct LogPart {
  uint64_t offset = 0;  // of data; larger than asked for where rotation has removed bytes
  std::string data;     // cut after a whole line where there is one and more follows
  bool at_end = false;  // data reaches the present end
};

// kNotFound: the rank has no log there. An offset beyond the end gives the end.
absl::StatusOr<LogPart> ReadRankLog(const std::string& directory, uint32_t rank, uint64_t offset, size_t max_bytes);

// Where the last `lines` lines begin, as far as they are kept. Reads at most 16 MiB.
absl::StatusOr<uint64_t> TailOffset(const std::string& directory, uint32_t rank, uint32_t lines);

// Replaces what is not UTF-8, and NUL, by U+FFFD: protobuf's strings take nothing else.
std::string ToValidUtf8(absl::string_view text);

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_RANK_LOG_H_
