// An attempt is over: the job ends, starts again, or goes back to the queue.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "placement/from_proto.h"
#include "proto/base/check.h"
#include "proto/base/proto_time.h"
#include "scheduler/core/core_impl.h"
#include "scheduler/core/verdict.h"

namespace closeknit {
namespace {

constexpr absl::Duration kMaxRestartBackoff = absl::Minutes(1);
constexpr absl::Duration kQuickFailure = absl::Minutes(1);  // an attempt that ran for less has failed "at once"

// base, 2 base, 4 base, ... for 1, 2, 3, ... failures.
absl::Duration Doubled(absl::Duration base, int failures, absl::Duration most) {
  if (failures <= 0) return absl::ZeroDuration();
  return std::min(most, base * (int64_t{1} << std::min(failures - 1, 20)));
}

bool FailedAtOnce(const v1::Attempt& attempt) {
  return !attempt.has_start_time() || FromProtoTime(attempt.end_time()) - FromProtoTime(attempt.start_time()) < kQuickFailure;
}

}  // namespace

void CoreImpl::MaybeEndAttempt(JobEntry& job) {
  Gang& gang = *job.gang;
  if (!gang.all(SlotPhase::kEnded)) return;
  if (!job.job->attempt().has_end_time()) {
    *Change(job).mutable_attempt()->mutable_end_time() = ToProtoTime(now_);
    for (int i = 0; i < gang.size(); ++i) {
      if (HeldPart(job, i) != nullptr) SendRelease(*gang.slots()[i].node, job.id, gang.attempt());
    }
  }
  if (job.job->state() == v1::JOB_STATE_STOPPING) {
    DropGang(job);
    return EndJob(job, job.job->verdict());
  }
  const absl::Duration backoff = RestartBackoff(job);
  bool keeps_hosts = job.job->attempt().has_start_time();
  for (int i = 0; keeps_hosts && i < gang.size(); ++i) keeps_hosts = HeldPart(job, i) != nullptr;
  if (!keeps_hosts || backoff == absl::ZeroDuration()) return RestartAttempt(job);
  v1::Job& changed = Change(job);
  changed.set_reason_code("Restarting");
  changed.set_reason(absl::StrCat(changed.attempt().verdict().message(), "; starts again in ", absl::FormatDuration(backoff)));
  *job.record.mutable_retry_time() = ToProtoTime(now_ + backoff);
  SetJobTimer(job, now_ + backoff);
}

// Zero after an attempt that ran for long. Attempts that were never started count for what their hosts did.
absl::Duration CoreImpl::RestartBackoff(const JobEntry& entry) const {
  const v1::Job& job = *entry.job;
  if (!job.attempt().has_start_time()) {
    return Doubled(config_.restart_backoff, static_cast<int>(entry.record.prepare_failures()), kMaxRestartBackoff);
  }
  int quick = FailedAtOnce(job.attempt()) ? 1 : 0;
  for (int i = job.past_attempts_size() - 1; quick > 0 && i >= 0 && FailedAtOnce(job.past_attempts(i)); --i) ++quick;
  return Doubled(config_.restart_backoff, quick, kMaxRestartBackoff);
}

void CoreImpl::RestartAttempt(JobEntry& job) {
  std::optional<Succession> next = Succeed(job);
  if (!next.has_value()) return Requeue(job);
  v1::Job& changed = Change(job);
  changed.set_restarts(changed.restarts() + 1);
  Note(Notice::Kind::kRestart, job, changed.attempt().verdict().node(), changed.attempt().verdict().message());
  DropGang(job);
  StartAttempt(job, std::move(next->slots), std::move(next->placement));
}

std::optional<CoreImpl::Succession> CoreImpl::Succeed(const JobEntry& job) const {
  const Gang& gang = *job.gang;
  if (!job.job->attempt().has_start_time()) return std::nullopt;  // never prepared: not on these hosts again
  Succession next;
  next.placement = job.job->attempt().placement();
  std::vector<HostId> hosts;
  std::vector<int> failed;
  for (int i = 0; i < gang.size(); ++i) {
    const Slot& slot = gang.slots()[i];
    Node& node = *slot.node;
    if (HeldPart(job, i) == nullptr) return std::nullopt;  // was given back while the job waited for another host
    if (!node.host.has_value()) return std::nullopt;
    const bool fit = node.connected() && !node.drained() && !node.resting() && view_->status(*node.host).present.Contains(slot.gpus);
    if (!fit) failed.push_back(i);
    hosts.push_back(*node.host);
    next.slots.push_back({.node = &node, .gpus = slot.gpus});
  }
  if (failed.empty()) return next;
  if (!job.shape->request.ok()) return std::nullopt;
  const absl::StatusOr<Placement> found = Replace(*view_, RequestOf(job, Avoid::kAll), hosts, failed);
  if (!found.ok()) return std::nullopt;
  for (const int i : failed) next.slots[i] = {.node = &NodeOf(found->hosts[i]), .gpus = found->gpus[i]};
  next.placement = ToProto(*found, view_->fabric());
  return next;
}

// It keeps its place: before all that was submitted later.
void CoreImpl::Requeue(JobEntry& job) {
  const bool unstarted = !job.job->attempt().has_start_time();
  const absl::Duration backoff = RestartBackoff(job);
  DropGang(job);
  v1::Job& changed = Change(job);
  changed.set_state(v1::JOB_STATE_PENDING);
  ++pending_;
  job.record.clear_slot_gpus();
  job.record.clear_lingering_slots();
  const std::string& why = changed.attempt().verdict().message();
  if (!unstarted) {
    changed.set_restarts(changed.restarts() + 1);
    Note(Notice::Kind::kRestart, job, changed.attempt().verdict().node(), absl::StrCat(why, "; back to the queue for hosts"));
  }
  *job.record.mutable_retry_time() = ToProtoTime(now_ + backoff);
  changed.set_reason_code("BeginTime");
  changed.set_reason(absl::StrCat(why, "; tried again in ", absl::FormatDuration(backoff)));
  Enqueue(job);
}

void CoreImpl::DropGang(JobEntry& job) {
  const Gang& gang = *job.gang;
  for (int i = 0; i < gang.size(); ++i) {
    // What was left behind stays held until its host has cleared it.
    if (HeldPart(job, i) != nullptr) Free(*gang.slots()[i].node, job.id, gang.attempt());
  }
  job.gang = nullptr;
  SetJobTimer(job, absl::InfiniteFuture());
}

void CoreImpl::EndJob(JobEntry& job, v1::ExitVerdict verdict) {
  CHECK(job.gang == nullptr) << "job " << job.id << " has a live attempt";
  Dequeue(job);
  if (IsPending(*job.job)) --pending_;
  v1::Job& changed = Change(job);
  changed.set_state(EndState(verdict.cause()));
  changed.clear_reason();
  changed.clear_reason_code();
  *changed.mutable_verdict() = std::move(verdict);
  *changed.mutable_end_time() = ToProtoTime(now_);
  job.record.clear_slot_gpus();
  job.record.clear_avoid_nodes();
  job.record.clear_lingering_slots();
  job.record.clear_retry_time();
  job.waiting = Waiting::kNothing;
  job.leftovers.clear();
  SetJobTimer(job, absl::InfiniteFuture());
  shapes_.Release(job.shape);
  job.shape = nullptr;
  const absl::Time since = FromProtoTime(changed.has_start_time() ? changed.start_time() : changed.submit_time());
  Note(Notice::Kind::kJobEnded, job, changed.verdict().node(), v1::EndCause_Name(changed.verdict().cause()), now_ - since);
  CountEnded(job);
  ReturnArrayToken(job);
}

void CoreImpl::PurgeEnded() {
  while (ended_.size() > static_cast<size_t>(config_.max_ended_jobs)) {
    const JobId id = ended_.front();
    JobEntry& job = *FindJob(id);
    if (job.changed) return;  // in this very step: the next one takes it
    ended_.pop_front();
    effects_.writes.push_back({Table::kJobs, JobKey(id), std::nullopt});
    effects_.purged_jobs.push_back(id);
    if (!job.record.request_id().empty()) {
      const std::string key = RequestKey(job.job->user(), job.record.request_id());
      requests_.erase(key);
      effects_.writes.push_back({Table::kRequests, key, std::nullopt});
    }
    const auto array = arrays_.find(job.unit());
    if (array != arrays_.end() && id + 1 == array->first + array->second.counts.tasks) arrays_.erase(array);
    jobs_.erase(id);
  }
}

}  // namespace closeknit
