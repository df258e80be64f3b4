// The scheduler's deterministic core: job and node life cycles, queue, gang start. Stepped with events, it hands out effects.
//
// It takes no clock, file, socket, thread or random source: the same state, events and times give the same effects, bit for bit. One thread
// calls it. The shell's duties, in order, for each batch of events:
//   1. effects = core.Apply(batch, now), with `now` never going back;
//   2. commit effects.writes in one synced batch. If that fails: let nothing out, fail the batch's calls with kUnavailable, drop this Core
//   and
//      every agent session, and Restore a new one from the store;
//   3. publish effects.jobs and nodes to readers, send replies and commands, close sessions;
//   4. call Apply again (with an empty batch if need be) when core.next_deadline() has come.
#ifndef CLOSEKNIT_SCHEDULER_CORE_CORE_H_
#define CLOSEKNIT_SCHEDULER_CORE_CORE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "closeknit/v1/store.pb.h"
#include "cluster_model/cluster_view.h"
#include "scheduler/core/events.h"

namespace closeknit {

// Limits and times. All are positive.
struct CoreConfig {
  absl::Duration prepare_timeout = absl::Seconds(30);           // PREPARE given -> PREPARED, on every host
  absl::Duration start_timeout = absl::Seconds(30);             // START given -> STARTED
  absl::Duration stop_timeout = absl::Seconds(30);              // beyond the grace period: then the job says which host it waits for
  absl::Duration host_backoff = absl::Seconds(30);              // a host that failed a PREPARE gets no work for that long; doubles up to
  absl::Duration host_backoff_max = absl::Minutes(10);          // this
  absl::Duration restart_backoff = absl::Seconds(1);            // between attempts of a gang that fails at once; doubles up to 1 min
  absl::Duration heartbeat_interval = absl::Milliseconds(500);  // told to agents
  int max_pending_jobs = 1'000'000;                             // further submits: kResourceExhausted
  int max_array_tasks = 10'000;
  int max_ended_jobs = 100'000;  // kept in memory and store; the oldest are purged
};

// Everything the store holds, as the shell scanned it.
struct StoredState {
  v1::MetaRecord meta;
  std::optional<v1::FabricRecord> fabric_record;
  std::shared_ptr<const Fabric> fabric;  // read from fabric_record by the shell; null before the first ApplyTopology
  std::vector<v1::NodeRecord> nodes;
  std::vector<v1::JobRecord> jobs;                                  // in id order
  std::vector<std::pair<std::string, v1::RequestRecord>> requests;  // by key
};

class Core {
 public:
  // The state that was last committed. `meta.term` is this leadership's own, already raised and stored by the shell. Every job has its
  // committed state, every host is down until its agent connects; live attempts keep their GPUs. Hosts of live attempts that the fabric no
  // longer has are kept apart and reported in the job's reason (field case 11). kDataLoss if records contradict each other.
  // Effects hold the read model: all jobs and nodes.
  static absl::StatusOr<std::unique_ptr<Core>> Restore(StoredState stored, const CoreConfig& config, absl::Time now, Effects* effects);

  virtual ~Core() = default;

  // Applies the events in order, then what is due at `now`, then makes one scheduling pass if anything asks for one.
  virtual Effects Apply(absl::Span<const Event> batch, absl::Time now) = 0;

  // When Apply wants to be called next even without events; InfiniteFuture: never.
  virtual absl::Time next_deadline() const = 0;

  virtual const ClusterView* view() const = 0;  // null before the first topology
  // 1 is next; 0: not pending. O(log pending).
  virtual int QueuePosition(JobId job) const = 0;

  // Invariants 2, 3, 4, 5 and 7 of the design on the present state; names ids. O(jobs + hosts). For tests, the simulator and fsck.
  virtual absl::Status CheckInvariants() const = 0;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_CORE_CORE_H_
