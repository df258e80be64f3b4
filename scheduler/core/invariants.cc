// What must hold after every step; see the invariants in docs/core.md.
#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/base/proto_time.h"
#include "proto/base/status_macros.h"
#include "scheduler/core/core_impl.h"

namespace closeknit {
namespace {

absl::Status Broken(const Node& node, const Part& part, absl::string_view what) {
  return absl::InternalError(absl::StrCat(node.name, ", job ", part.job, " attempt ", part.attempt, ": ", what));
}

absl::Status Broken(const JobEntry& job, absl::string_view what) {
  return absl::InternalError(absl::StrCat("job ", job.id, " (", v1::JobState_Name(job.job->state()), "): ", what));
}

// 2 and 4: a GPU has one owner, a host one attempt of a job.
absl::Status CheckParts(const Node& node, const std::optional<ClusterView>& view) {
  GpuSet owned;
  for (const Part& part : node.parts) {
    for (const Part& other : node.parts) {
      const bool live = part.slot != Part::kLeftover;
      if (&other != &part && other.job == part.job && live) return Broken(node, part, "two attempts of one job on one host");
    }
    if (node.host.has_value() && part.slot != Part::kLeftover && !part.in_view) return Broken(node, part, "its GPUs are not allocated");
    if (!part.in_view) continue;
    if (!(owned & part.gpus).empty()) return Broken(node, part, "a GPU has two owners");
    owned = owned | part.gpus;
    // 5: a drained host gets no new work.
    if (part.slot != Part::kLeftover && node.drained() && part.since > FromProtoTime(node.record.reason_time())) {
      return Broken(node, part, "new work on a drained host");
    }
  }
  if (node.host.has_value() && view->status(*node.host).allocated != owned) {
    return absl::InternalError(absl::StrCat(node.name, ": the view has other GPUs allocated than its parts hold"));
  }
  return absl::OkStatus();
}

// 3: no rank starts before every rank was prepared.
absl::Status CheckGang(const JobEntry& job) {
  const Gang& gang = *job.gang;
  const v1::Attempt& attempt = job.job->attempt();
  if (attempt.number() != gang.attempt()) return Broken(job, "its record has another attempt");
  if (gang.size() != attempt.placement().hosts_size()) return Broken(job, "its record has another number of hosts");
  const bool preparing = job.job->state() == v1::JOB_STATE_PREPARING;
  if (preparing && (gang.count(SlotPhase::kStarted) > 0 || attempt.has_start_time())) return Broken(job, "ranks run before START");
  const int prepared = gang.count(SlotPhase::kPrepared) + gang.count(SlotPhase::kStarted) + gang.count(SlotPhase::kEnded);
  if (job.job->state() == v1::JOB_STATE_RUNNING && prepared != gang.size()) return Broken(job, "START before every slot was prepared");
  for (int i = 0; i < gang.size(); ++i) {
    const Slot& slot = gang.slots()[i];
    if (slot.node->name != attempt.placement().hosts(i)) return Broken(job, absl::StrCat("slot ", i, " is recorded on another host"));
    const Part* const part = slot.node->FindPart(job.id, gang.attempt());
    const bool gone = slot.phase == SlotPhase::kEnded || slot.phase == SlotPhase::kRefused || slot.phase == SlotPhase::kFailed;
    if (part == nullptr && !gone) return Broken(job, absl::StrCat("slot ", i, " holds nothing on ", slot.node->name));
    if (part != nullptr && part->slot != i && part->slot != Part::kLeftover) return Broken(job, absl::StrCat("slot ", i, " is mixed up"));
    if (part != nullptr && part->slot == Part::kLeftover && slot.phase != SlotPhase::kEnded) {
      return Broken(job, absl::StrCat("slot ", i, " was left behind and still counts"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckJob(const JobEntry& job) {
  const v1::Job& what = *job.job;
  const bool live = !HasEnded(what) && !IsPending(what);
  if (live != (job.gang != nullptr)) return Broken(job, "its state and its attempt disagree");
  if (HasEnded(what) != (job.shape == nullptr)) return Broken(job, "its state and its shape disagree");
  if (HasEnded(what) && (!what.has_verdict() || !what.has_end_time())) return Broken(job, "ended without verdict or time");
  if (job.queued != (IsPending(what) && job.waiting == Waiting::kNothing)) return Broken(job, "its place in the queue is wrong");
  for (const Node* const node : job.leftovers) {
    const bool held = absl::c_any_of(node->parts, [&](const Part& part) { return part.job == job.id && part.slot == Part::kLeftover; });
    if (!held) return Broken(job, absl::StrCat("keeps off ", node->name, " for nothing"));
  }
  return job.gang != nullptr ? CheckGang(job) : absl::OkStatus();
}

}  // namespace

absl::Status CoreImpl::CheckInvariants() const {
  if (view_.has_value()) {
    RETURN_IF_ERROR(view_->CheckCounts());
    RETURN_IF_ERROR(idle_->CheckCounts());
  }
  size_t connected = 0;
  for (const auto& [name, node] : nodes_) {
    RETURN_IF_ERROR(CheckParts(*node, view_));
    for (const Part& part : node->parts) {
      const JobEntry* const job = FindJob(part.job);
      const bool live = job != nullptr && job->gang != nullptr && job->gang->attempt() == part.attempt;
      if (part.slot != Part::kLeftover && (!live || job->gang->slots()[part.slot].node != node.get())) {
        return Broken(*node, part, "held for an attempt that is not live there");
      }
    }
    connected += node->connected();
  }
  if (connected != sessions_.size()) return absl::InternalError("sessions and connected hosts differ");
  int queued = 0, pending = 0;
  for (const auto& [id, job] : jobs_) {
    RETURN_IF_ERROR(CheckJob(*job));
    queued += job->queued;
    pending += IsPending(*job->job);
  }
  if (queued != queue_.size()) return absl::InternalError(absl::StrCat(queued, " jobs are queued, the queue has ", queue_.size()));
  if (pending != pending_) return absl::InternalError(absl::StrCat(pending, " jobs are pending, counted are ", pending_));
  return absl::OkStatus();
}

}  // namespace closeknit
