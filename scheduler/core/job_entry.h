// A job as the core holds it: its record, its place in the queue, its live attempt.
#ifndef CLOSEKNIT_SCHEDULER_CORE_JOB_ENTRY_H_
#define CLOSEKNIT_SCHEDULER_CORE_JOB_ENTRY_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "closeknit/v1/store.pb.h"
#include "cluster_model/ids.h"
#include "scheduler/core/shape.h"

namespace closeknit {

struct Node;

// How far one slot of the live attempt has come, as far as this scheduler was told.
enum class SlotPhase : uint8_t {
  kAssigned,  // PREPARE is due: sent, or to be sent when the host connects
  kRefused,   // the host blames the job
  kLost,      // its host disconnected while preparing: to be replaced, or waited for where there is no other
  kFailed,    // it cannot be prepared on this host: to be replaced
  kPrepared,  // also: START was sent, and not confirmed yet
  kStarted,
  kEnded,  // no process is left
};
inline constexpr int kSlotPhases = 7;

struct Slot {
  Node* node = nullptr;
  GpuSet gpus;
  SlotPhase phase = SlotPhase::kAssigned;
  absl::Time due = absl::InfiniteFuture();  // for PREPARED, then for STARTED
  bool gone = false;                        // the host says that nothing of it is left; its GPUs are freed with the decision that follows
  std::string failure{};                    // kRefused, kLost, kFailed: what the host said
};

// The live attempt: from the choice of hosts until no process of it is left.
class Gang {
 public:
  Gang(AttemptNumber attempt, std::vector<Slot> slots) : attempt_(attempt), slots_(std::move(slots)) {
    for (const Slot& slot : slots_) ++counts_[static_cast<int>(slot.phase)];
  }

  AttemptNumber attempt() const { return attempt_; }
  const std::vector<Slot>& slots() const { return slots_; }
  Slot& slot(int index) { return slots_[index]; }
  int size() const { return static_cast<int>(slots_.size()); }

  void SetPhase(int index, SlotPhase phase) {
    --counts_[static_cast<int>(slots_[index].phase)];
    slots_[index].phase = phase;
    ++counts_[static_cast<int>(phase)];
  }
  int count(SlotPhase phase) const { return counts_[static_cast<int>(phase)]; }
  bool all(SlotPhase phase) const { return count(phase) == size(); }

  uint32_t master_port = 0;  // reported by slot 0 once it is prepared

 private:
  AttemptNumber attempt_;
  std::vector<Slot> slots_;
  std::array<int, kSlotPhases> counts_{};
};

// What keeps a pending job from being placed.
enum class Waiting : uint8_t {
  kNothing,     // it is in the queue (pending), or not pending
  kHeld,        // by its submitter
  kDependency,  // on other jobs
  kBackoff,     // until its retry_time
  kArrayLimit,  // for another task of its array to end
};

struct JobEntry {
  JobId id = 0;
  std::shared_ptr<v1::Job> job;  // the version at hand; readers may hold it once it was published: change it by CoreImpl::Change only
  v1::JobRecord record;          // all of the record but `job`
  bool changed = false;          // since the last flush; then `job` is this core's alone
  bool purged = false;

  Shape* shape = nullptr;  // of jobs that have not ended
  Waiting waiting = Waiting::kNothing;
  bool queued = false;       // in JobQueue
  bool array_token = false;  // counts against its array's limit

  std::unique_ptr<Gang> gang;    // null: no live attempt
  std::vector<Node*> leftovers;  // hosts that may still hold a part of an attempt that has gone on without them
  absl::Time timer = absl::InfiniteFuture();

  QueueKey key() const { return {-job->spec().priority(), record.queue_sequence(), id}; }
  // Dependencies name a job alone or its array.
  JobId unit() const { return job->array_job_id() != 0 ? job->array_job_id() : id; }
};

inline bool HasEnded(const v1::Job& job) { return job.state() >= v1::JOB_STATE_COMPLETED; }
inline bool IsPending(const v1::Job& job) { return job.state() == v1::JOB_STATE_PENDING; }

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_CORE_JOB_ENTRY_H_
