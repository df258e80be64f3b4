#include "agents/rank_log.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"
#include "proto/base/utf8.h"

namespace closeknit {
namespace {

constexpr uint64_t kMaxTailBytes = 16 << 20;

std::string SegmentPath(const std::string& directory, uint32_t rank, uint64_t start) {
  return absl::StrFormat("%s/rank-%d.%020d.log", directory, rank, start);
}

// Starts of the rank's segments, ascending.
absl::StatusOr<std::vector<uint64_t>> Segments(const std::string& directory, uint32_t rank) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(directory.c_str()), closedir);
  if (listing == nullptr) return SystemError(absl::StrCat("open ", directory));
  const std::string prefix = absl::StrCat("rank-", rank, ".");
  std::vector<uint64_t> starts;
  while (const dirent* entry = readdir(listing.get())) {
    absl::string_view name = entry->d_name;
    uint64_t start = 0;
    if (absl::ConsumePrefix(&name, prefix) && absl::ConsumeSuffix(&name, ".log") && absl::SimpleAtoi(name, &start)) starts.push_back(start);
  }
  if (starts.empty()) return absl::NotFoundError(absl::StrCat("no log of rank ", rank, " in ", directory));
  std::sort(starts.begin(), starts.end());
  return starts;
}

struct Segment {
  OwnedFd file;
  uint64_t start = 0, end = 0;
  bool last = false;
};

// The segment that holds `offset`, or the oldest one after it, or the last one.
absl::StatusOr<Segment> FindSegment(const std::string& directory, uint32_t rank, uint64_t offset) {
  // Segments are removed while we look: then look again.
  for (int attempt = 0; attempt < 100; ++attempt) {
    ASSIGN_OR_RETURN(const std::vector<uint64_t> starts, Segments(directory, rank));
    auto next = std::upper_bound(starts.begin(), starts.end(), offset);
    if (next == starts.begin()) ++next;
    Segment segment;
    segment.start = *std::prev(next);
    segment.last = next == starts.end();
    segment.file = OwnedFd(open(SegmentPath(directory, rank, segment.start).c_str(), O_RDONLY | O_CLOEXEC));
    if (!segment.file.ok() && errno == ENOENT) continue;
    if (!segment.file.ok()) return SystemError(absl::StrCat("log of rank ", rank));
    const off_t size = lseek(segment.file.get(), 0, SEEK_END);
    if (size < 0) return SystemError(absl::StrCat("log of rank ", rank));
    segment.end = segment.start + static_cast<uint64_t>(size);
    return segment;
  }
  return absl::UnavailableError(absl::StrCat("the log of rank ", rank, " is rotated faster than it can be read"));
}

}  // namespace

absl::StatusOr<RankLog> RankLog::Create(const std::string& directory, uint32_t rank, RankLogLimits limits) {
  RankLog log(directory, rank, limits);
  RETURN_IF_ERROR(log.OpenSegment());
  return log;
}

absl::Status RankLog::OpenSegment() {
  const std::string path = SegmentPath(directory_, rank_, segment_start_);
  file_ = OwnedFd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  return file_.ok() ? absl::OkStatus() : SystemError(absl::StrCat("open ", path));
}

void RankLog::Append(absl::string_view bytes) {
  Remember(bytes);
  // Segments end after a line where that is possible.
  while (segment_bytes_ + bytes.size() > limits_.max_bytes) {
    const uint64_t room = limits_.max_bytes - std::min(segment_bytes_, limits_.max_bytes);
    const size_t newline = room == 0 ? absl::string_view::npos : bytes.rfind('\n', room - 1);
    const size_t fits = newline != absl::string_view::npos ? newline + 1 : segment_bytes_ == 0 ? room : 0;
    Write(bytes.substr(0, fits));
    bytes.remove_prefix(fits);
    if (segment_bytes_ == 0) break;  // nothing is taken: the disk is full
    complete_.push_back(segment_start_);
    segment_start_ += std::exchange(segment_bytes_, 0);
    file_.Close();
    if (complete_.size() > limits_.max_files) {
      unlink(SegmentPath(directory_, rank_, complete_.front()).c_str());
      complete_.pop_front();
    }
  }
  Write(bytes);
}

void RankLog::Write(absl::string_view bytes) {
  if (bytes.empty()) return;
  if (dropped_unsaid_ > 0) {
    const std::string line = absl::StrCat("\n[knit: the disk did not take ", dropped_unsaid_, " bytes of this log]\n");
    if (WriteToDisk(line)) dropped_unsaid_ = 0;
  }
  if (dropped_unsaid_ == 0 && WriteToDisk(bytes)) return;
  dropped_ += bytes.size();
  dropped_unsaid_ += bytes.size();
}

bool RankLog::WriteToDisk(absl::string_view bytes) {
  if (!file_.ok() && !OpenSegment().ok()) return false;
  while (!bytes.empty()) {
    const ssize_t written = write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    segment_bytes_ += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

void RankLog::Remember(absl::string_view bytes) {
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const absl::string_view piece = bytes.substr(0, newline);
    if (!line_open_) lines_.emplace_back();
    std::string& line = lines_.back();
    line.append(piece.data(), std::min(piece.size(), kMaxLastLineBytes - line.size()));
    line_open_ = newline == absl::string_view::npos;
    bytes.remove_prefix(line_open_ ? bytes.size() : newline + 1);
    if (lines_.size() > kMaxLastLines) lines_.pop_front();
  }
}

std::vector<std::string> RankLog::LastLines() const {
  std::vector<std::string> lines;
  for (const std::string& line : lines_) lines.push_back(ToValidUtf8(line));
  return lines;
}

absl::StatusOr<LogPart> ReadRankLog(const std::string& directory, uint32_t rank, uint64_t offset, size_t max_bytes) {
  ASSIGN_OR_RETURN(const Segment segment, FindSegment(directory, rank, offset));
  LogPart part;
  part.offset = std::clamp(offset, segment.start, segment.end);
  const size_t wanted = static_cast<size_t>(std::min<uint64_t>(max_bytes, segment.end - part.offset));
  part.data.resize(wanted);
  const ssize_t got = pread(segment.file.get(), part.data.data(), wanted, static_cast<off_t>(part.offset - segment.start));
  if (got < 0) return SystemError(absl::StrCat("log of rank ", rank));
  part.data.resize(static_cast<size_t>(got));
  part.at_end = segment.last && part.offset + part.data.size() >= segment.end;
  const size_t newline = part.data.rfind('\n');
  if (part.offset + part.data.size() < segment.end && newline != std::string::npos) part.data.resize(newline + 1);
  return part;
}

absl::StatusOr<uint64_t> TailOffset(const std::string& directory, uint32_t rank, uint32_t lines) {
  ASSIGN_OR_RETURN(const Segment last, FindSegment(directory, rank, ~uint64_t{0}));
  uint64_t position = last.end;
  std::string text;  // [position, last.end)
  while (true) {
    // The newline that ends the last line begins no line.
    size_t at = text.size();
    uint32_t found = 0;
    if (!text.empty() && text.back() == '\n') --at;
    while (at > 0 && (at = text.rfind('\n', at - 1)) != std::string::npos) {
      if (++found == lines) return position + at + 1;
    }
    if (position == 0 || text.size() >= kMaxTailBytes) return position;
    const uint64_t start = position > (1 << 16) ? position - (1 << 16) : 0;
    ASSIGN_OR_RETURN(const Segment segment, FindSegment(directory, rank, position - 1));
    if (segment.start >= position) return position;  // what is before was removed
    const uint64_t from = std::max(start, segment.start);
    std::string more(static_cast<size_t>(position - from), '\0');
    const ssize_t got = pread(segment.file.get(), more.data(), more.size(), static_cast<off_t>(from - segment.start));
    if (got != static_cast<ssize_t>(more.size())) return position;
    text.insert(0, more);
    position = from;
  }
}

std::string ToValidUtf8(absl::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t length = text[0] == '\0' ? 0 : Utf8Length(text);
    if (length == 0) {
      valid += "\xEF\xBF\xBD";
      text.remove_prefix(1);
    } else {
      absl::StrAppend(&valid, text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return valid;
}

}  // namespace closeknit
