#include "agents/fence.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agents/files.h"
#include "proto/base/status_macros.h"

namespace closeknit {

absl::StatusOr<Fence> Fence::Open(std::string path) {
  Fence fence(std::move(path));
  const absl::StatusOr<std::string> text = ReadWholeFile(fence.path_);
  if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
  if (text.ok()) RETURN_IF_ERROR(fence.Parse(*text));
  RETURN_IF_ERROR(fence.Rewrite());
  return fence;
}

absl::Status Fence::Parse(const std::string& text) {
  size_t number = 0;
  const size_t complete = text.rfind('\n');
  if (complete == std::string::npos) return absl::OkStatus();
  for (const absl::string_view line : absl::StrSplit(absl::string_view(text).substr(0, complete), '\n')) {
    ++number;
    if (!ParseLine(std::string(line))) {
      return absl::DataLossError(
          absl::StrCat(path_, ":", number, ": '", line.substr(0, 60),
                       "' is none of 'term N', 'attempt JOB N', 'start JOB N'; without this file the host could run an "
                       "old attempt again: stop what it runs and remove its spool"));
    }
  }
  return absl::OkStatus();
}

bool Fence::ParseLine(const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  uint64_t first = 0;
  uint32_t attempt = 0;
  if (words.size() < 2 || !absl::SimpleAtoi(words[1], &first)) return false;
  if (words[0] == "term" && words.size() == 2) {
    term_ = std::max(term_, first);
    return true;
  }
  if ((words[0] != "attempt" && words[0] != "start") || words.size() != 3 || !absl::SimpleAtoi(words[2], &attempt)) return false;
  Note(first, attempt, words[0] == "start");
  return true;
}

void Fence::Note(uint64_t id, uint32_t attempt, bool started) {
  Job& job = jobs_[id];
  if (attempt < job.attempt) return;
  job.started = started || (job.started && attempt == job.attempt);
  job.attempt = attempt;
  job.changed = ++changes_;
}

uint32_t Fence::attempt(uint64_t job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? 0 : found->second.attempt;
}

bool Fence::started(const v1::SlotId& id) const {
  const auto found = jobs_.find(id.job_id());
  return found != jobs_.end() && found->second.attempt == id.attempt() && found->second.started;
}

absl::Status Fence::RaiseTerm(uint64_t term) {
  if (term <= term_) return absl::OkStatus();
  RETURN_IF_ERROR(Save(absl::StrCat("term ", term, "\n")));
  term_ = term;
  return absl::OkStatus();
}

absl::Status Fence::RaiseAttempt(const v1::SlotId& id) {
  if (id.attempt() <= attempt(id.job_id())) return absl::OkStatus();
  RETURN_IF_ERROR(Save(absl::StrCat("attempt ", id.job_id(), " ", id.attempt(), "\n")));
  Note(id.job_id(), id.attempt(), false);
  return absl::OkStatus();
}

absl::Status Fence::MarkStarted(const v1::SlotId& id) {
  if (id.attempt() < attempt(id.job_id()) || started(id)) return absl::OkStatus();
  RETURN_IF_ERROR(Save(absl::StrCat("start ", id.job_id(), " ", id.attempt(), "\n")));
  Note(id.job_id(), id.attempt(), true);
  return absl::OkStatus();
}

absl::Status Fence::Save(const std::string& line) {
  if (torn_ || lines_ > 4 * kMaxJobs) RETURN_IF_ERROR(Rewrite());
  // By path each time: a spool that has vanished must be noticed, not written to where nobody finds it again.
  const OwnedFd file(open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file.ok()) return SystemError(absl::StrCat("open ", path_));
  const bool written = write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (written && fdatasync(file.get()) == 0) {
    ++lines_;
    return absl::OkStatus();
  }
  torn_ = true;
  return SystemError(absl::StrCat("write ", path_));
}

absl::Status Fence::Rewrite() {
  if (jobs_.size() > kMaxJobs) {
    std::vector<uint64_t> changes;
    for (const auto& [id, job] : jobs_) changes.push_back(job.changed);
    std::nth_element(changes.begin(), changes.end() - kMaxJobs, changes.end());
    const uint64_t oldest_kept = *(changes.end() - kMaxJobs);
    for (auto job = jobs_.begin(); job != jobs_.end();) job = job->second.changed < oldest_kept ? jobs_.erase(job) : std::next(job);
  }
  std::vector<std::pair<uint64_t, uint64_t>> order;  // (change, job)
  for (const auto& [id, job] : jobs_) order.emplace_back(job.changed, id);
  std::sort(order.begin(), order.end());
  std::string text = absl::StrCat("term ", term_, "\n");
  for (const auto& [change, id] : order) {
    const Job& job = jobs_[id];
    absl::StrAppend(&text, job.started ? "start " : "attempt ", id, " ", job.attempt, "\n");
  }
  RETURN_IF_ERROR(WriteDurably(path_, text));
  lines_ = 1 + jobs_.size();
  torn_ = false;
  return absl::OkStatus();
}

}  // namespace closeknit
