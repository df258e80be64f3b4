// From START to the last process: ranks run, fail, are stopped.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/host_list.h"
#include "proto/base/proto_time.h"
#include "scheduler/core/core_impl.h"
#include "scheduler/core/verdict.h"

namespace closeknit {

void CoreImpl::OnSlotStatus(JobEntry& job, int index, const v1::SlotStatus& status, Source source) {
  Gang& gang = *job.gang;
  if (gang.slots()[index].phase == SlotPhase::kEnded) {
    // A verdict that was committed already: the host may forget it once the attempt is over.
    if (status.state() == v1::SLOT_STATE_ENDED && gang.all(SlotPhase::kEnded)) {
      SendRelease(*gang.slots()[index].node, job.id, gang.attempt());
    }
    return;
  }
  switch (job.job->state()) {
    case v1::JOB_STATE_PREPARING:
      if (status.state() == v1::SLOT_STATE_PREPARED) {
        OnPrepared(job, index, status);
      } else if (status.state() == v1::SLOT_STATE_ENDED) {
        OnSlotGone(job, index, "the slot ended while it was being prepared");
      } else if (status.state() == v1::SLOT_STATE_STARTED) {
        Refuse(*gang.slots()[index].node, job.id, gang.attempt(), "STARTED without START");
        FailSlot(job, index, SlotPhase::kFailed, "reported ranks that nobody had started");
      }
      break;
    case v1::JOB_STATE_RUNNING:
      OnRunningStatus(job, index, status, source);
      break;
    default:
      OnStoppingStatus(job, index, status, source);
  }
}

// Nothing of the slot is left on its host, and no verdict of it is known.
void CoreImpl::OnSlotGone(JobEntry& job, int index, const std::string& why) {
  Gang& gang = *job.gang;
  Slot& slot = gang.slot(index);
  if (slot.phase == SlotPhase::kEnded) return;
  if (job.job->state() == v1::JOB_STATE_PREPARING) {
    SendRelease(*slot.node, job.id, gang.attempt());
    slot.gone = true;
    return FailSlot(job, index, SlotPhase::kFailed, why);
  }
  gang.SetPhase(index, SlotPhase::kEnded);
  if (job.job->state() == v1::JOB_STATE_RUNNING) {
    v1::ExitVerdict verdict;
    verdict.set_cause(v1::END_CAUSE_HOST_LOST);
    verdict.set_message(absl::StrCat(slot.node->name, ": ", why));
    verdict.set_rank(-1);
    verdict.set_node(slot.node->name);
    *verdict.mutable_time() = ToProtoTime(now_);
    return FailGang(job, std::move(verdict));
  }
  MaybeEndAttempt(job);
}

void CoreImpl::OnRunningStatus(JobEntry& job, int index, const v1::SlotStatus& status, Source source) {
  Gang& gang = *job.gang;
  const std::string& node = gang.slots()[index].node->name;
  const bool ended = status.state() == v1::SLOT_STATE_ENDED;
  if (source == Source::kInventory && status.state() == v1::SLOT_STATE_PREPARED) SendStart(job, {index});
  if (status.state() == v1::SLOT_STATE_STARTED || (ended && !status.supervisor_lost())) MarkStarted(job, index);
  if (ended) gang.SetPhase(index, SlotPhase::kEnded);
  std::optional<v1::ExitVerdict> failure = FirstFailure(status, node, ended ? CountStopped::kYes : CountStopped::kNo);
  if (ended && status.supervisor_lost() && !failure.has_value()) failure = SupervisorLost(status, node, now_);
  if (failure.has_value()) return FailGang(job, *std::move(failure));
  if (gang.all(SlotPhase::kEnded)) {
    v1::ExitVerdict verdict;
    verdict.set_cause(v1::END_CAUSE_COMPLETED);
    verdict.set_message(absl::StrCat("every rank of ", job.job->spec().nodes() * job.job->spec().ranks_per_node(), " exited with code 0"));
    verdict.set_rank(-1);
    *verdict.mutable_time() = ToProtoTime(now_);
    EndGang(job, std::move(verdict));
  }
}

void CoreImpl::MarkStarted(JobEntry& job, int index) {
  Gang& gang = *job.gang;
  if (gang.slots()[index].phase != SlotPhase::kPrepared) return;
  gang.SetPhase(index, SlotPhase::kStarted);
  gang.slot(index).due = absl::InfiniteFuture();
  if (gang.count(SlotPhase::kStarted) != gang.size()) return;
  const v1::Attempt& attempt = job.job->attempt();
  Note(Notice::Kind::kGangStarted, job, attempt.placement().hosts(0), absl::StrCat(gang.size(), " hosts"),
       now_ - FromProtoTime(attempt.placed_time()));
}

void CoreImpl::OnStoppingStatus(JobEntry& job, int index, const v1::SlotStatus& status, Source source) {
  Gang& gang = *job.gang;
  const Slot& slot = gang.slots()[index];
  // What failed first may be reported after what made us stop.
  std::optional<v1::ExitVerdict> failure = FirstFailure(status, slot.node->name, CountStopped::kNo);
  if (!failure.has_value() && status.supervisor_lost()) failure = SupervisorLost(status, slot.node->name, now_);
  if (failure.has_value() && IsEarlierFailure(*failure, job.job->attempt().verdict())) {
    v1::Job& changed = Change(job);
    *changed.mutable_attempt()->mutable_verdict() = *failure;
    if (changed.has_verdict()) *changed.mutable_verdict() = *std::move(failure);
  }
  if (status.state() == v1::SLOT_STATE_ENDED) {
    gang.SetPhase(index, SlotPhase::kEnded);
    return MaybeEndAttempt(job);
  }
  if (source == Source::kInventory) StopSlot(job, index);
}

void CoreImpl::OnRejected(JobEntry& job, int index, const v1::SlotRejected& rejected) {
  Gang& gang = *job.gang;
  Slot& slot = gang.slot(index);
  if (slot.phase == SlotPhase::kEnded) return;
  const std::string why = absl::StrCat(rejected.reason_code(), ": ", rejected.message());
  if (job.job->state() != v1::JOB_STATE_PREPARING) return OnSlotGone(job, index, why);
  slot.gone = true;
  FailSlot(job, index, rejected.host_fault() ? SlotPhase::kFailed : SlotPhase::kRefused, why);
}

void CoreImpl::OnRunDue(JobEntry& job) {
  const v1::Job& what = *job.job;
  absl::Time next = absl::InfiniteFuture();
  if (what.spec().has_time_limit()) {
    next = FromProtoTime(what.start_time()) + FromProtoDuration(what.spec().time_limit());
    if (next <= now_) {
      v1::ExitVerdict verdict;
      verdict.set_cause(v1::END_CAUSE_TIME_LIMIT);
      verdict.set_message(absl::StrCat("ran for its time limit of ", absl::FormatDuration(FromProtoDuration(what.spec().time_limit()))));
      verdict.set_rank(-1);
      *verdict.mutable_time() = ToProtoTime(now_);
      return EndGang(job, std::move(verdict));
    }
  }
  const Gang& gang = *job.gang;
  for (int i = 0; i < gang.size() && gang.count(SlotPhase::kPrepared) > 0; ++i) {
    const Slot& slot = gang.slots()[i];
    if (slot.phase != SlotPhase::kPrepared) continue;
    if (slot.due > now_) {
      next = std::min(next, slot.due);
      continue;
    }
    v1::ExitVerdict verdict;
    verdict.set_cause(v1::END_CAUSE_HOST_LOST);
    verdict.set_message(absl::StrCat(slot.node->name, " did not confirm START within ", absl::FormatDuration(config_.start_timeout),
                                     slot.node->connected() ? "" : absl::StrCat(" (", slot.node->down_reason, ")")));
    verdict.set_rank(-1);
    verdict.set_node(slot.node->name);
    *verdict.mutable_time() = ToProtoTime(now_);
    return FailGang(job, std::move(verdict));
  }
  SetJobTimer(job, next);
}

void CoreImpl::FailGang(JobEntry& job, v1::ExitVerdict verdict) {
  const v1::RestartPolicy& policy = job.job->spec().restart();
  // A failed PREPARE is no failure of the job: it goes back to the queue, its budget untouched.
  const bool unstarted = verdict.cause() == v1::END_CAUSE_PREPARE_FAILED;
  const bool restarts = policy.mode() == v1::RESTART_MODE_GANG && job.job->restarts() < policy.max_restarts();
  if (!unstarted && !restarts) return EndGang(job, std::move(verdict));
  v1::Job& changed = Change(job);
  changed.set_state(v1::JOB_STATE_RESTARTING);
  changed.set_reason_code("Restarting");
  changed.set_reason(verdict.message());
  *changed.mutable_attempt()->mutable_verdict() = std::move(verdict);
  StopSlots(job);
}

void CoreImpl::EndGang(JobEntry& job, v1::ExitVerdict verdict) {
  v1::Job& changed = Change(job);
  const bool restarting = changed.state() == v1::JOB_STATE_RESTARTING;
  changed.set_state(v1::JOB_STATE_STOPPING);
  changed.clear_reason_code();
  changed.clear_reason();
  *changed.mutable_verdict() = verdict;
  // An attempt that has failed already keeps its own verdict, and its slots were told to stop.
  if (restarting) return MaybeEndAttempt(job);
  *changed.mutable_attempt()->mutable_verdict() = std::move(verdict);
  StopSlots(job);
}

void CoreImpl::StopSlots(JobEntry& job) {
  Gang& gang = *job.gang;
  for (int i = 0; i < gang.size(); ++i) {
    Slot& slot = gang.slot(i);
    if (slot.phase == SlotPhase::kEnded) continue;
    if (slot.gone) {
      Free(*slot.node, job.id, gang.attempt());
      gang.SetPhase(i, SlotPhase::kEnded);
    } else if (!LeaveUnstarted(job, i)) {
      StopSlot(job, i);
    }
  }
  StoreHolding(job);
  SetJobTimer(job, now_ + FromProtoDuration(job.job->spec().grace_period()) + config_.stop_timeout);
  MaybeEndAttempt(job);
}

// Which slots still hold GPUs, where not all do: after a restart of the scheduler, too, only they shall.
void CoreImpl::StoreHolding(JobEntry& job) {
  const Gang& gang = *job.gang;
  std::vector<uint32_t> holding;
  for (int i = 0; i < gang.size(); ++i) {
    if (HeldPart(job, i) != nullptr) holding.push_back(i);
  }
  if (static_cast<int>(holding.size()) == gang.size()) return;
  const auto& stored = job.record.lingering_slots();
  if (std::equal(holding.begin(), holding.end(), stored.begin(), stored.end())) return;
  Change(job);
  job.record.mutable_lingering_slots()->Assign(holding.begin(), holding.end());
}

bool CoreImpl::LeaveUnstarted(JobEntry& job, int index) {
  Node& node = *job.gang->slots()[index].node;
  if (job.job->attempt().has_start_time() || node.connected()) return false;
  LeavePart(job, *HeldPart(job, index), node);
  job.gang->SetPhase(index, SlotPhase::kEnded);
  return true;
}

void CoreImpl::StopSlot(const JobEntry& job, int index) {
  const Slot& slot = job.gang->slots()[index];
  const std::string& why = job.job->has_verdict()             ? job.job->verdict().message()
                           : job.job->attempt().has_verdict() ? job.job->attempt().verdict().message()
                                                              : slot.failure;  // replaced
  SendStop(*slot.node, job.id, job.gang->attempt(), why);
}

// Grace and stop timeout are over: says which hosts the job waits for, and gives back the others.
void CoreImpl::OnStopDue(JobEntry& job) {
  Gang& gang = *job.gang;
  std::vector<std::string> silent, hanging;
  for (int i = 0; i < gang.size(); ++i) {
    Node& node = *gang.slots()[i].node;
    if (gang.slots()[i].phase == SlotPhase::kEnded) {
      if (HeldPart(job, i) == nullptr) continue;
      SendRelease(node, job.id, gang.attempt());
      Free(node, job.id, gang.attempt());
    } else if (LeaveUnstarted(job, i)) {
      continue;
    } else if (node.drained() && !node.host.has_value() && !node.connected()) {
      // An operator has drained the host and then taken it out of the fabric, and nobody answers there: their word that it is gone.
      Free(node, job.id, gang.attempt());
      gang.SetPhase(i, SlotPhase::kEnded);
    } else {
      (node.connected() ? hanging : silent).push_back(node.name);
      StopSlot(job, i);
    }
  }
  if (gang.all(SlotPhase::kEnded)) return MaybeEndAttempt(job);
  StoreHolding(job);
  std::string reason = "waits for the end of its ranks on ";
  if (!silent.empty()) absl::StrAppend(&reason, FoldHostSet(silent), " (not connected)", hanging.empty() ? "" : ", ");
  if (!hanging.empty()) absl::StrAppend(&reason, FoldHostSet(hanging));
  SetReason(job, "Stopping", reason);
  SetJobTimer(job, now_ + config_.stop_timeout);
}

}  // namespace closeknit
