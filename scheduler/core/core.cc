#include <algorithm>
#include <utility>
#include <variant>

#include "proto/base/check.h"
#include "proto/base/errors.h"
#include "scheduler/core/core_impl.h"

namespace closeknit {

absl::StatusOr<std::unique_ptr<Core>> Core::Restore(StoredState stored, const CoreConfig& config, absl::Time now, Effects* effects) {
  auto core = std::make_unique<CoreImpl>(config, stored.meta);
  absl::StatusOr<Effects> loaded = core->Load(std::move(stored), now);
  if (!loaded.ok()) return loaded.status();
  *effects = *std::move(loaded);
  return core;
}

Effects CoreImpl::Apply(absl::Span<const Event> batch, absl::Time now) {
  now_ = std::max(now_, now);
  for (const Event& event : batch) {
    std::visit([this](const auto& what) { Handle(what); }, event);
  }
  RunTimers();
  Settle();
  return Flush();
}

void CoreImpl::Settle() {
  // A replacement comes before new work: the gang that waits for it already holds its other hosts. What fails for good in there may end
  // jobs, whose dependents may end too; each turn ends at least one job or slot for good, so this ends.
  do {
    while (!repairs_.empty()) {
      JobEntry& job = *FindJob(*repairs_.begin());
      repairs_.erase(repairs_.begin());
      Repair(job);
    }
    SettleDependents();
  } while (!repairs_.empty());
  Schedule();
  PurgeEnded();
}

absl::Time CoreImpl::next_deadline() const {
  if (pass_unfinished_) return now_;
  return std::min(job_timers_.next(), host_timers_.next());
}

int CoreImpl::QueuePosition(JobId id) const {
  const JobEntry* job = FindJob(id);
  if (job == nullptr || !IsPending(*job->job)) return 0;
  return queue_.Ahead(job->key()) + 1;
}

void CoreImpl::RunTimers() {
  while (const std::optional<std::string> name = host_timers_.Due(now_)) EndBackOff(*FindNode(*name));
  while (const std::optional<JobId> id = job_timers_.Due(now_)) {
    JobEntry& job = *FindJob(*id);
    SetJobTimer(job, absl::InfiniteFuture());
    OnJobDue(job);
    CHECK(job.timer > now_) << "job " << job.id << " in state " << v1::JobState_Name(job.job->state()) << " is due for ever";
  }
}

void CoreImpl::OnJobDue(JobEntry& job) {
  switch (job.job->state()) {
    case v1::JOB_STATE_PENDING:
      if (job.waiting == Waiting::kBackoff) Enqueue(job);
      break;
    case v1::JOB_STATE_PREPARING:
      OnPrepareDue(job);
      break;
    case v1::JOB_STATE_RUNNING:
      OnRunDue(job);
      break;
    case v1::JOB_STATE_RESTARTING:
      if (job.gang->all(SlotPhase::kEnded)) {
        RestartAttempt(job);
      } else {
        OnStopDue(job);
      }
      break;
    case v1::JOB_STATE_STOPPING:
      OnStopDue(job);
      break;
    default:
      break;
  }
}

void CoreImpl::Handle(const SubmitJob& event) { Answer(event.call, Submit(event.request)); }

void CoreImpl::Handle(const CancelJobs& event) { Answer(event.call, Cancel(event.request)); }

void CoreImpl::Handle(const DrainNodes& event) { Answer(event.call, Drain(event.request)); }

void CoreImpl::Handle(const ResumeNodes& event) { Answer(event.call, Resume(event.request)); }

void CoreImpl::Handle(const ApplyTopology& event) { Answer(event.call, ApplyFabric(event.request, event.fabric)); }

void CoreImpl::Handle(const TakeSnapshot& event) {
  if (!view_.has_value()) {
    return Answer<std::shared_ptr<const ClusterView>>(event.call,
                                                      Precondition("NO_TOPOLOGY", "fabric", "no topology has been applied yet"));
  }
  const uint64_t version = view_->version(view_->fabric().root());
  if (snapshot_ == nullptr || snapshot_version_ != version) {
    snapshot_ = std::make_shared<const ClusterView>(*view_);
    snapshot_version_ = version;
  }
  Answer<std::shared_ptr<const ClusterView>>(event.call, snapshot_);
}

JobEntry* CoreImpl::FindJob(JobId id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second.get();
}

Node* CoreImpl::FindNode(const std::string& name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : found->second.get();
}

}  // namespace closeknit
