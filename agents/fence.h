// What an agent must never forget: the highest scheduler's term it has served, and per job the highest attempt and whether that has
// started.
//
// A text file of lines, appended and synced: "term 5", "attempt 4711 2", "start 4711 2"; rewritten shorter now and then. It outlives slots:
// that is how a late command for a slot that is long gone is told from a new one.
#ifndef CLOSEKNIT_AGENTS_FENCE_H_
#define CLOSEKNIT_AGENTS_FENCE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "closeknit/v1/agent.pb.h"

namespace closeknit {

class Fence {
 public:
  // Jobs that are remembered at least; those whose attempts changed longest ago go first. A scheduler sends no commands so late.
  static constexpr size_t kMaxJobs = 50'000;

  // Reads the file, or begins one. kDataLoss names file and line; an unfinished last line is a write that nobody was told of.
  static absl::StatusOr<Fence> Open(std::string path);

  uint64_t term() const { return term_; }
  uint32_t attempt(uint64_t job) const;      // 0: none
  bool started(const v1::SlotId& id) const;  // this attempt, as far as it is the highest

  // After OK it is on disk. Lower values than known change nothing.
  absl::Status RaiseTerm(uint64_t term);
  absl::Status RaiseAttempt(const v1::SlotId& id);
  absl::Status MarkStarted(const v1::SlotId& id);

 private:
  struct Job {
    uint32_t attempt = 0;
    bool started = false;
    uint64_t changed = 0;  // order of changes
  };
  explicit Fence(std::string path) : path_(std::move(path)) {}
  absl::Status Parse(const std::string& text);
  bool ParseLine(const std::string& line);
  void Note(uint64_t job, uint32_t attempt, bool started);
  absl::Status Save(const std::string& line);
  absl::Status Rewrite();

  std::string path_;
  uint64_t term_ = 0;
  std::map<uint64_t, Job> jobs_;
  uint64_t changes_ = 0;
  size_t lines_ = 0;   // in the file
  bool torn_ = false;  // an append failed: the file's end is unknown until it is rewritten
};

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_FENCE_H_
