// The core's state and its transitions. One class, one file a subject: core.cc steps it, and then
//
//   submit.cc        a job comes in              gang_prepare.cc  hosts are prepared, replaced, started
//   dependencies.cc  what jobs wait for          gang_run.cc      ranks run, fail, and are stopped
//   schedule.cc      the queue, placement        gang_end.cc      an attempt is over; so is the job, or it starts again
//   agents.cc        streams and inventories     nodes.cc         drain, resume, back-off, what a host holds
//   topology.cc      another fabric              restore.cc       the state after a restart
//   publish.cc       changes become effects      invariants.cc    what must hold after every step
//
// docs/core.md has the state machines.
#ifndef CLOSEKNIT_SCHEDULER_CORE_CORE_IMPL_H_
#define CLOSEKNIT_SCHEDULER_CORE_CORE_IMPL_H_

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "placement/place.h"
#include "scheduler/core/array_spec.h"
#include "scheduler/core/core.h"
#include "scheduler/core/job_entry.h"
#include "scheduler/core/node.h"
#include "scheduler/core/queue.h"
#include "scheduler/core/shape.h"
#include "scheduler/core/timers.h"

namespace closeknit {

// One pass asks placement at most this often, so that a step stays short; the rest goes into the next step, which is due at once.
inline constexpr int kMaxPlacementsPerPass = 1'024;
// A job ends after this many failed PREPAREs in a row on hosts' account (and an eighth of its slots more).
inline constexpr uint32_t kMaxPrepareFailures = 8;
inline constexpr int kMaxPastAttempts = 16;

// How far the tasks of an array have come, or the one of a job alone.
struct TaskCounts {
  int tasks = 0;
  int started = 0;  // or ended without a start
  int ended = 0;
  int completed = 0;
};

// The tasks of one array, for its limit and for those that depend on it.
struct ArrayEntry {
  TaskCounts counts;
  int at_once = 0;                   // 0: no limit
  int tokens = 0;                    // tasks that are queued or live, where there is a limit
  absl::btree_set<JobId> waiting{};  // for a token
};

class CoreImpl final : public Core {
 public:
  CoreImpl(const CoreConfig& config, v1::MetaRecord meta) : config_(config), meta_(std::move(meta)) {}

  // For a new object only; see Core::Restore.
  absl::StatusOr<Effects> Load(StoredState stored, absl::Time now);

  Effects Apply(absl::Span<const Event> batch, absl::Time now) override;
  absl::Time next_deadline() const override;
  const ClusterView* view() const override { return view_.has_value() ? &*view_ : nullptr; }
  int QueuePosition(JobId job) const override;
  absl::Status CheckInvariants() const override;

 private:
  // How a report reached us: an inventory also asks what the agent is to do next.
  enum class Source { kReport, kInventory };
  enum class DependencyState { kWaiting, kSatisfied, kNever };

  // ---- core.cc ----
  void Handle(const SubmitJob& event);
  void Handle(const CancelJobs& event);
  void Handle(const DrainNodes& event);
  void Handle(const ResumeNodes& event);
  void Handle(const ApplyTopology& event);
  void Handle(const TakeSnapshot& event);
  void Handle(const AgentConnected& event);
  void Handle(const AgentReported& event);
  void Handle(const AgentDisconnected& event);
  void RunTimers();
  void OnJobDue(JobEntry& job);
  // Everything that the events have left to do: dependents, replacements, placements.
  void Settle();

  // ---- submit.cc ----
  absl::StatusOr<v1::SubmitJobResponse> Submit(const v1::SubmitJobRequest& request);
  absl::Status CheckDependencies(const v1::JobSpec& spec) const;
  absl::Status CheckFits(const Shape& shape, const v1::JobSpec& spec) const;
  JobEntry& AddJob(v1::JobSpec spec, const std::string& user, Shape* shape);
  absl::StatusOr<v1::CancelJobResponse> Cancel(const v1::CancelJobRequest& request);
  bool CancelOne(JobEntry& job, const std::string& user);
  std::vector<JobEntry*> JobsOf(JobId job_or_array);

  // ---- dependencies.cc ----
  DependencyState StateOf(const v1::Dependency& dependency) const;
  DependencyState DependenciesOf(const JobEntry& job, std::string* waits_for) const;
  void WatchDependencies(JobEntry& job);
  void SettleDependents();
  // Counts for arrays; wakes dependents.
  void CountStarted(const JobEntry& job);
  void CountEnded(const JobEntry& job);

  // ---- schedule.cc ----
  // A pending job goes into the queue, or waits for what it must wait for.
  void Enqueue(JobEntry& job);
  void Dequeue(JobEntry& job);
  void Wait(JobEntry& job, Waiting waiting, const std::string& code, const std::string& reason);
  void SetReason(JobEntry& job, const std::string& code, const std::string& reason);
  bool TakeArrayToken(JobEntry& job);
  void ReturnArrayToken(JobEntry& job);
  void ChooseShape(JobEntry& job);
  void Schedule();
  bool TryStart(JobEntry& job);
  // The request with the hosts that this job must not get: all that it avoids, or only those that are resting.
  enum class Avoid { kAll, kResting };
  GangRequest RequestOf(const JobEntry& job, Avoid avoid) const;
  bool AvoidsRestedHosts(const JobEntry& job) const;
  absl::StatusOr<Placement> PlaceJob(const JobEntry& job, const ClusterView& view) const;
  void Blocked(JobEntry& job, const absl::Status& status);

  // ---- gang_prepare.cc ----
  void StartAttempt(JobEntry& job, std::vector<Slot> slots, v1::Placement placement);
  v1::GangMap MapOf(const Gang& gang) const;
  void SendPrepare(JobEntry& job, absl::Span<const int> slots);
  void SendStart(JobEntry& job, absl::Span<const int> slots);
  void FailSlot(JobEntry& job, int slot, SlotPhase phase, const std::string& why);
  void OnPrepared(JobEntry& job, int slot, const v1::SlotStatus& status);
  void OnPrepareDue(JobEntry& job);
  // Replaces what FailSlot has marked.
  void Repair(JobEntry& job);
  bool RepairByReplacing(JobEntry& job, absl::Span<const int> failed);
  void GiveUpAttempt(JobEntry& job, absl::Span<const int> failed);
  void StartGang(JobEntry& job);
  void StoreSlots(JobEntry& job);

  // ---- gang_run.cc ----
  void OnSlotStatus(JobEntry& job, int slot, const v1::SlotStatus& status, Source source);
  void OnSlotGone(JobEntry& job, int slot, const std::string& why);
  void OnRunningStatus(JobEntry& job, int slot, const v1::SlotStatus& status, Source source);
  void OnStoppingStatus(JobEntry& job, int slot, const v1::SlotStatus& status, Source source);
  void OnRejected(JobEntry& job, int slot, const v1::SlotRejected& rejected);
  void OnRunDue(JobEntry& job);
  void MarkStarted(JobEntry& job, int slot);
  // The attempt has failed: restart by policy, or end.
  void FailGang(JobEntry& job, v1::ExitVerdict verdict);
  // The job's end is decided.
  void EndGang(JobEntry& job, v1::ExitVerdict verdict);
  void StopSlots(JobEntry& job);
  void StopSlot(const JobEntry& job, int slot);
  void StoreHolding(JobEntry& job);
  // Where no rank can run, since START was never given: the host clears its part when it comes back.
  bool LeaveUnstarted(JobEntry& job, int slot);
  void OnStopDue(JobEntry& job);

  // ---- gang_end.cc ----
  // Goes on if no slot is left.
  void MaybeEndAttempt(JobEntry& job);
  void RestartAttempt(JobEntry& job);
  // The present hosts, or with substitutes for those that cannot take the next attempt; nullopt: there are none.
  struct Succession {
    std::vector<Slot> slots;
    v1::Placement placement;
  };
  std::optional<Succession> Succeed(const JobEntry& job) const;
  void Requeue(JobEntry& job);
  void DropGang(JobEntry& job);
  // Of a job without a live attempt.
  void EndJob(JobEntry& job, v1::ExitVerdict verdict);
  void PurgeEnded();
  absl::Duration RestartBackoff(const JobEntry& job) const;
  void SetJobTimer(JobEntry& job, absl::Time time) { job_timers_.Set(job.id, time, &job.timer); }

  // ---- agents.cc ----
  void Connect(SessionId session, Node& node, const v1::Hello& hello);
  void Disconnect(Node& node, const std::string& why);
  void Reconcile(Node& node, const v1::Hello& hello);
  void OnStatus(Node& node, const v1::SlotStatus& status, Source source);
  void OnRejected(Node& node, const v1::SlotRejected& rejected);
  void OnMissing(Node& node, const Part& part);
  void AdoptStray(Node& node, const v1::SlotStatus& status);
  void SendStop(const Node& node, JobId job, AttemptNumber attempt, const std::string& reason);
  void SendRelease(const Node& node, JobId job, AttemptNumber attempt);
  void CloseStream(SessionId session, absl::Status status);
  void Send(const Node& node, v1::SchedulerMessage message);
  void Refuse(const Node& node, JobId job, AttemptNumber attempt, const std::string& what);

  // ---- nodes.cc ----
  absl::StatusOr<std::vector<Node*>> NodesNamed(const google::protobuf::RepeatedPtrField<std::string>& lists);
  absl::StatusOr<v1::DrainNodesResponse> Drain(const v1::DrainNodesRequest& request);
  absl::StatusOr<v1::ResumeNodesResponse> Resume(const v1::ResumeNodesRequest& request);
  void SetHardware(Node& node, const google::protobuf::RepeatedPtrField<v1::Gpu>& gpus);
  void UpdateAvailability(Node& node);
  void BackOff(Node& node, const std::string& why);
  void EndBackOff(Node& node);
  void Hold(Node& node, Part part, const JobEntry* job);
  void Free(Node& node, JobId job, AttemptNumber attempt);
  // The job goes on without its part on the node, and keeps off it meanwhile.
  void LeavePart(JobEntry& job, Part& part, Node& node);
  // What the slot of the live attempt holds; null where it was given back or left behind.
  static Part* HeldPart(const JobEntry& job, int slot);
  void FreeLeftover(Node& node, JobId job, AttemptNumber attempt);
  v1::Node Describe(const Node& node) const;
  Node& AddNode(const std::string& name);
  void StoreNode(const Node& node);
  // A node that the fabric no longer has, once nothing holds it.
  void RetireNode(Node& node);

  // ---- topology.cc ----
  absl::StatusOr<v1::ApplyTopologyResponse> ApplyFabric(const v1::ApplyTopologyRequest& request, std::shared_ptr<const Fabric> fabric);
  absl::Status CheckRemovable(absl::Span<const std::string> removed) const;
  void InstallFabric(std::shared_ptr<const Fabric> fabric);
  void RemoveFromFabric(Node& node);
  void AddToFabric(Node& node, HostId host);

  // ---- restore.cc ----
  absl::Status LoadJob(v1::JobRecord record);
  absl::Status LoadGang(JobEntry& job);
  absl::Status LoadSlots(const JobEntry& job, std::vector<Slot>* slots);
  void LoadQueue(absl::Span<JobEntry* const> jobs);

  // ---- publish.cc ----
  // The job, to be changed: a new version that is committed and published with this step.
  v1::Job& Change(JobEntry& job);
  void Touch(Node& node);
  void Note(Notice::Kind kind, const JobEntry& job, std::string node, std::string detail, absl::Duration elapsed = absl::ZeroDuration());
  void NoteNode(const Node& node, std::string detail);
  template <typename Response>
  void Answer(CallId call, absl::StatusOr<Response> response);
  Effects Flush();

  JobEntry* FindJob(JobId id) const;
  Node* FindNode(const std::string& name) const;
  Node& NodeOf(HostId host) const { return *node_of_host_[host.value]; }

  const CoreConfig config_;
  v1::MetaRecord meta_;
  absl::Time now_ = absl::InfinitePast();

  // What is there. `idle_` has the same hosts' health without any work, `ideal_` everything up as well. All or none.
  std::optional<v1::FabricRecord> fabric_record_;
  std::optional<ClusterView> view_, idle_, ideal_;
  std::shared_ptr<const ClusterView> snapshot_;  // of view_, while it is the same
  uint64_t snapshot_version_ = 0;
  absl::btree_map<std::string, std::unique_ptr<Node>> nodes_;
  std::vector<Node*> node_of_host_;
  std::vector<std::unique_ptr<Node>> retired_nodes_;  // out of the fabric; ended slots may still point at them
  absl::flat_hash_map<SessionId, Node*> sessions_;
  uint64_t idle_seen_ = 0;  // version of idle_ at which stalled shapes were last woken

  absl::flat_hash_map<JobId, std::unique_ptr<JobEntry>> jobs_;
  absl::flat_hash_map<JobId, ArrayEntry> arrays_;                 // by id
  absl::flat_hash_map<std::string, v1::RequestRecord> requests_;  // by key
  absl::flat_hash_map<JobId, std::vector<JobId>> dependents_;     // job or array -> pending jobs that name it
  std::deque<JobId> ended_;                                       // may be purged, oldest first
  int pending_ = 0;                                               // jobs

  ShapeTable shapes_;
  JobQueue queue_;
  JobId blocked_head_ = 0;  // the job whose reason says what the queue waits for
  bool pass_unfinished_ = false;

  Timers<JobId> job_timers_;
  Timers<std::string> host_timers_;
  std::deque<JobId> settle_;        // jobs and arrays whose dependents are to be looked at
  absl::btree_set<JobId> repairs_;  // jobs with marked slots

  // Of this step.
  Effects effects_;
  std::vector<JobEntry*> changed_jobs_;
  std::vector<Node*> changed_nodes_;
  bool meta_changed_ = false;
  uint64_t node_version_ = 0;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_CORE_CORE_IMPL_H_
