// The one writer: takes events from all threads, steps the core, commits, and only then lets effects out.
//
// While one batch is being synced the next one gathers: under load one sync pays for many events (group commit), and a lone event waits for
// nobody. docs/adr/0001-one-writer-group-commit.md has the reasons.
#ifndef CLOSEKNIT_SCHEDULER_COMMIT_LOOP_H_
#define CLOSEKNIT_SCHEDULER_COMMIT_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "cluster_model/store/store.h"
#include "proto/base/mutex.h"
#include "scheduler/core/core.h"

namespace closeknit {

// Where committed effects go: readers, agents' streams, log, metrics. Called on the loop's thread alone.
class EffectSink {
 public:
  virtual ~EffectSink() = default;
  // Effects of one committed batch, less their replies. `core` is as it was after the batch.
  virtual void LetOut(Effects effects, const Core& core, absl::Time now) = 0;
  // A core was restored from the store; `effects` hold all jobs and nodes. `fabric`: the stored one, nullopt before the first topology.
  virtual void Restored(Effects effects, const Core& core, const std::optional<v1::FabricRecord>& fabric, absl::Time now) = 0;
  // The store failed: every agent's stream has to end, and new ones be refused, until Restored.
  virtual void StoreFailed(const absl::Status& status) = 0;
  // An agent connected while there is no core.
  virtual void Refuse(SessionId session, const absl::Status& status) = 0;
  // One commit has taken `elapsed` for `events` events and `writes` records.
  virtual void Committed(size_t events, size_t writes, absl::Duration elapsed) = 0;
};

// A core from the store, under a new term that is stored already. Makes the meta record of a new store.
struct RestoredCore {
  std::unique_ptr<Core> core;
  Effects effects;  // committed
  std::optional<v1::FabricRecord> fabric;
};
absl::StatusOr<RestoredCore> RestoreCore(Store* store, const CoreConfig& config, absl::Time now);

class CommitLoop {
 public:
  using Answer = std::function<void(absl::StatusOr<ReplyMessage>)>;

  // `store` and `sink` outlive the loop.
  CommitLoop(Store* store, const CoreConfig& config, EffectSink* sink);
  ~CommitLoop();  // Stop()

  // Restores the core and starts the thread. Errors are those of the store.
  absl::Status Start();
  // Ends the thread after the batch at hand; events that were not taken yet are answered kUnavailable.
  void Stop();

  // An event that nobody waits for. Never blocks.
  void Post(Event event);
  // An event with a `call` field; `answer` is called once, on the loop's thread (or here: kResourceExhausted when kMaxQueue events wait,
  // kUnavailable after Stop), and must not block.
  void Call(Event event, Answer answer);

  static constexpr size_t kMaxQueue = 200'000;  // events
  static constexpr size_t kMaxBatch = 2'048;    // events a commit

 private:
  struct Entry {
    Event event;
    Answer answer;
  };

  void Run();
  // Waits for events or the core's deadline. False: stop.
  bool TakeBatch(std::vector<Entry>* batch);
  void Step(std::vector<Entry> batch);
  void Reply(std::vector<Reply> replies);
  void FailCalls(const absl::Status& status);
  void RefuseAll(std::vector<Entry> batch);
  void DropCore(const absl::Status& why);
  void TryRestore();
  absl::Time Now();

  Store* const store_;
  const CoreConfig config_;
  EffectSink* const sink_;
  std::thread thread_;

  // The loop's thread alone.
  std::unique_ptr<Core> core_;  // null while the store fails
  absl::Status store_status_;   // why core_ is null
  absl::Time next_restore_ = absl::InfiniteFuture();
  absl::Time now_ = absl::InfinitePast();
  CallId next_call_ = 1;
  absl::flat_hash_map<CallId, Answer> calls_;

  Mutex mutex_;  // events come from gRPC's threads
  CondVar wake_;
  std::vector<Entry> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_COMMIT_LOOP_H_
