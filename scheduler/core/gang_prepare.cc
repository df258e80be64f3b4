// From the choice of hosts to START: every slot is prepared, or its host replaced, before any rank runs.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "placement/from_proto.h"
#include "proto/base/check.h"
#include "proto/base/host_list.h"
#include "proto/base/proto_time.h"
#include "scheduler/core/core_impl.h"

namespace closeknit {
namespace {

std::string AddressOf(const Node& node) { return node.record.address().empty() ? node.name : node.record.address(); }

// One value for all slots where they are equal.
void SetSlotGpus(const std::vector<Slot>& slots, v1::JobRecord* record) {
  record->clear_slot_gpus();
  const bool equal = std::all_of(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.gpus == slots[0].gpus; });
  for (size_t i = 0; i < (equal ? 1 : slots.size()); ++i) {
    v1::GpuSet* set = record->add_slot_gpus();
    for (int gpu = 0; gpu < 64; ++gpu) {
      if (slots[i].gpus.Has(gpu)) set->add_gpus(gpu);
    }
  }
}

void AvoidNode(const std::string& name, v1::JobRecord* record) {
  const auto& avoided = record->avoid_nodes();
  if (std::find(avoided.begin(), avoided.end(), name) == avoided.end()) record->add_avoid_nodes(name);
}

std::vector<int> AllSlots(const Gang& gang) {
  std::vector<int> slots(gang.size());
  for (int i = 0; i < gang.size(); ++i) slots[i] = i;
  return slots;
}

std::vector<int> SlotsIn(const Gang& gang, std::initializer_list<SlotPhase> phases) {
  std::vector<int> slots;
  for (int i = 0; i < gang.size(); ++i) {
    if (std::find(phases.begin(), phases.end(), gang.slots()[i].phase) != phases.end()) slots.push_back(i);
  }
  return slots;
}

}  // namespace

void CoreImpl::StartAttempt(JobEntry& job, std::vector<Slot> slots, v1::Placement placement) {
  CHECK(job.gang == nullptr) << "job " << job.id << " has a live attempt";
  const AttemptNumber number = job.record.next_attempt();
  job.record.set_next_attempt(number + 1);
  job.record.clear_retry_time();
  for (Slot& slot : slots) slot.due = now_ + config_.prepare_timeout;
  job.gang = std::make_unique<Gang>(number, std::move(slots));
  v1::Job& changed = Change(job);
  if (changed.state() == v1::JOB_STATE_PENDING) --pending_;
  changed.set_state(v1::JOB_STATE_PREPARING);
  changed.clear_reason();
  changed.clear_reason_code();
  if (changed.has_attempt()) *changed.add_past_attempts() = std::move(*changed.mutable_attempt());
  if (changed.past_attempts_size() > kMaxPastAttempts) changed.mutable_past_attempts()->DeleteSubrange(0, 1);
  v1::Attempt& attempt = *changed.mutable_attempt();
  attempt.Clear();
  attempt.set_number(number);
  *attempt.mutable_placement() = std::move(placement);
  *attempt.mutable_placed_time() = ToProtoTime(now_);
  for (int i = 0; i < job.gang->size(); ++i) {
    const Slot& slot = job.gang->slots()[i];
    Hold(*slot.node, {.job = job.id, .attempt = number, .slot = i, .gpus = slot.gpus}, &job);
  }
  StoreSlots(job);
  SetJobTimer(job, now_ + config_.prepare_timeout);
  SendPrepare(job, AllSlots(*job.gang));
  Note(Notice::Kind::kJobPlaced, job, attempt.placement().hosts(0), absl::StrCat(job.gang->size(), " hosts"),
       now_ - FromProtoTime(changed.submit_time()));
}

// What the record says of hosts and GPUs, after they have changed.
void CoreImpl::StoreSlots(JobEntry& job) {
  v1::Attempt& attempt = *Change(job).mutable_attempt();
  for (int i = 0; i < job.gang->size(); ++i) attempt.mutable_placement()->set_hosts(i, job.gang->slots()[i].node->name);
  attempt.set_master_address(AddressOf(*job.gang->slots()[0].node));
  SetSlotGpus(job.gang->slots(), &job.record);
}

v1::GangMap CoreImpl::MapOf(const Gang& gang) const {
  v1::GangMap map;
  std::vector<std::string> names;
  names.reserve(gang.size());
  for (const Slot& slot : gang.slots()) names.push_back(slot.node->name);
  map.set_hosts(FoldHostList(names));
  const Fabric& fabric = view_->fabric();
  for (Tier tier = 1; tier <= fabric.top(); ++tier) {
    v1::GangTier& row = *map.add_tiers();
    row.set_tier(std::string(fabric.TierName(tier)));
    std::vector<std::string> domains;
    for (const Slot& slot : gang.slots()) {
      // Out of the fabric: of no domain, which readers see as a name of its own.
      const std::string name = slot.node->host.has_value() ? fabric.domain(fabric.DomainOf(*slot.node->host, tier)).name : "none";
      if (domains.empty() || domains.back() != name) {
        domains.push_back(name);
        row.add_slots(0);
      }
      row.set_slots(row.slots_size() - 1, row.slots(row.slots_size() - 1) + 1);
    }
    row.set_domains(FoldHostList(domains));
    const bool equal = std::all_of(row.slots().begin(), row.slots().end(), [&](uint32_t slots) { return slots == row.slots(0); });
    if (equal) row.mutable_slots()->Truncate(1);
  }
  return map;
}

// The messages differ in slot and GPUs alone.
void CoreImpl::SendPrepare(JobEntry& job, absl::Span<const int> slots) {
  const Gang& gang = *job.gang;
  const v1::Job& what = *job.job;
  v1::PrepareSlot prototype;
  prototype.set_term(meta_.term());
  prototype.mutable_id()->set_job_id(job.id);
  prototype.mutable_id()->set_attempt(gang.attempt());
  prototype.set_slots(gang.size());
  prototype.set_ranks_per_node(what.spec().ranks_per_node());
  *prototype.mutable_spec() = what.spec();
  prototype.set_user(what.user());
  *prototype.mutable_gang() = MapOf(gang);
  prototype.set_master_address(what.attempt().master_address());
  prototype.set_restart_count(what.restarts());
  prototype.set_max_restarts(what.spec().restart().max_restarts());
  prototype.set_array_job_id(what.array_job_id());
  prototype.set_array_task_id(what.array_task_id());
  for (const int i : slots) {
    const Slot& slot = gang.slots()[i];
    if (!slot.node->connected()) continue;
    v1::SchedulerMessage message;
    v1::PrepareSlot& prepare = *message.mutable_prepare();
    prepare = prototype;
    prepare.set_slot(i);
    for (int gpu = 0; gpu < 64; ++gpu) {
      if (slot.gpus.Has(gpu)) prepare.add_gpus(gpu);
    }
    Send(*slot.node, std::move(message));
  }
}

void CoreImpl::SendStart(JobEntry& job, absl::Span<const int> slots) {
  Gang& gang = *job.gang;
  v1::StartSlot start;
  start.set_term(meta_.term());
  start.mutable_id()->set_job_id(job.id);
  start.mutable_id()->set_attempt(gang.attempt());
  start.set_master_address(job.job->attempt().master_address());
  start.set_master_port(job.job->attempt().master_port());
  *start.mutable_gang() = MapOf(gang);
  for (const int i : slots) {
    gang.slot(i).due = now_ + config_.start_timeout;
    v1::SchedulerMessage message;
    *message.mutable_start() = start;
    Send(*gang.slot(i).node, std::move(message));
  }
  SetJobTimer(job, std::min(job.timer, now_ + config_.start_timeout));
}

void CoreImpl::OnPrepared(JobEntry& job, int index, const v1::SlotStatus& status) {
  Gang& gang = *job.gang;
  if (gang.slot(index).phase == SlotPhase::kPrepared) return;
  if (index == 0 && status.master_port() == 0) {
    return FailSlot(job, index, SlotPhase::kFailed, "PREPARED without a MASTER_PORT");
  }
  if (index == 0) gang.master_port = status.master_port();
  gang.SetPhase(index, SlotPhase::kPrepared);
  gang.slot(index).due = absl::InfiniteFuture();
  Node& node = *gang.slot(index).node;
  if (node.prepare_failures > 0) {
    node.prepare_failures = 0;
    node.prepare_failure.clear();
    Touch(node);
  }
  if (gang.all(SlotPhase::kPrepared)) return StartGang(job);
  // Now it is known that the job can be prepared: hosts that blamed it are at fault.
  if (gang.count(SlotPhase::kRefused) > 0) repairs_.insert(job.id);
}

void CoreImpl::StartGang(JobEntry& job) {
  v1::Job& changed = Change(job);
  changed.set_state(v1::JOB_STATE_RUNNING);
  changed.mutable_attempt()->set_master_port(job.gang->master_port);
  *changed.mutable_attempt()->mutable_start_time() = ToProtoTime(now_);
  const bool first = !changed.has_start_time();
  if (first) *changed.mutable_start_time() = ToProtoTime(now_);
  job.record.set_prepare_failures(0);
  job.record.clear_avoid_nodes();
  SetJobTimer(job, absl::InfiniteFuture());
  SendStart(job, AllSlots(*job.gang));
  if (first) CountStarted(job);
  // The time limit counts from the first START.
  if (changed.spec().has_time_limit()) {
    SetJobTimer(job, std::min(job.timer, FromProtoTime(changed.start_time()) + FromProtoDuration(changed.spec().time_limit())));
  }
}

// Marks the slot; Repair finds another host for all marked ones at the end of the step.
void CoreImpl::FailSlot(JobEntry& job, int index, SlotPhase phase, const std::string& why) {
  Gang& gang = *job.gang;
  gang.SetPhase(index, phase);
  gang.slot(index).failure = why;
  const std::string& node = gang.slot(index).node->name;
  if (phase == SlotPhase::kFailed && gang.slot(index).node->connected()) BackOff(*gang.slot(index).node, why);
  Note(Notice::Kind::kPrepareFailed, job, node, why);
  repairs_.insert(job.id);
}

void CoreImpl::OnPrepareDue(JobEntry& job) {
  Gang& gang = *job.gang;
  absl::Time next = absl::InfiniteFuture();
  // O(slots), at most once a replacement.
  for (int i = 0; i < gang.size(); ++i) {
    const Slot& slot = gang.slots()[i];
    if (slot.phase != SlotPhase::kAssigned && slot.phase != SlotPhase::kLost) continue;
    if (slot.due > now_) {
      next = std::min(next, slot.due);
    } else {
      FailSlot(job, i, SlotPhase::kFailed,
               absl::StrCat("not prepared within ", absl::FormatDuration(config_.prepare_timeout),
                            slot.node->connected() ? "" : absl::StrCat(" (", slot.node->down_reason, ")")));
    }
  }
  if (gang.count(SlotPhase::kRefused) > 0) repairs_.insert(job.id);
  SetJobTimer(job, next);
}

void CoreImpl::Repair(JobEntry& job) {
  if (job.job->state() != v1::JOB_STATE_PREPARING) return;
  const Gang& gang = *job.gang;
  // A host blames the job. Only if every host does is the job at fault; hosts that blame it where another has prepared it are themselves.
  if (gang.all(SlotPhase::kRefused)) return GiveUpAttempt(job, AllSlots(gang));
  const bool blame_hosts = gang.count(SlotPhase::kPrepared) > 0;
  const std::vector<int> failed = blame_hosts ? SlotsIn(gang, {SlotPhase::kRefused, SlotPhase::kLost, SlotPhase::kFailed})
                                              : SlotsIn(gang, {SlotPhase::kLost, SlotPhase::kFailed});
  if (failed.empty()) return;
  const uint32_t failures = job.record.prepare_failures() + static_cast<uint32_t>(failed.size());
  if (failures > kMaxPrepareFailures + gang.size() / 8) return GiveUpAttempt(job, failed);
  if (RepairByReplacing(job, failed)) return;
  const bool hopeless = std::any_of(failed.begin(), failed.end(), [&](int i) { return gang.slots()[i].phase != SlotPhase::kLost; });
  if (hopeless) GiveUpAttempt(job, failed);
  // Else: nobody can stand in for hosts that may come back; their deadline still runs.
}

bool CoreImpl::RepairByReplacing(JobEntry& job, absl::Span<const int> failed) {
  Gang& gang = *job.gang;
  std::vector<HostId> hosts;
  for (const Slot& slot : gang.slots()) {
    if (!slot.node->host.has_value()) return false;  // out of the fabric meanwhile
    hosts.push_back(*slot.node->host);
  }
  if (!job.shape->request.ok()) return false;
  const absl::StatusOr<Placement> found = Replace(*view_, RequestOf(job, Avoid::kAll), hosts, failed);
  if (!found.ok()) return false;
  job.record.set_prepare_failures(job.record.prepare_failures() + failed.size());
  for (const int i : failed) {
    Slot& slot = gang.slot(i);
    Node& before = *slot.node;
    AvoidNode(before.name, &job.record);
    if (slot.gone) {
      Free(before, job.id, gang.attempt());
    } else {
      StopSlot(job, i);
      LeavePart(job, *HeldPart(job, i), before);
    }
    slot.gone = false;
    slot.node = &NodeOf(found->hosts[i]);
    slot.gpus = found->gpus[i];
    slot.due = now_ + config_.prepare_timeout;
    slot.failure.clear();
    gang.SetPhase(i, SlotPhase::kAssigned);
    Hold(*slot.node, {.job = job.id, .attempt = gang.attempt(), .slot = i, .gpus = slot.gpus}, &job);
  }
  if (failed[0] == 0) gang.master_port = 0;
  *Change(job).mutable_attempt()->mutable_placement() = ToProto(*found, view_->fabric());
  StoreSlots(job);
  SetJobTimer(job, std::min(job.timer, now_ + config_.prepare_timeout));
  SendPrepare(job, failed);
  return true;
}

// Ends the attempt before any rank ran: the job goes back to the queue, or fails where it is at fault or has failed too often.
void CoreImpl::GiveUpAttempt(JobEntry& job, absl::Span<const int> failed) {
  const Gang& gang = *job.gang;
  const Slot& first = gang.slots()[failed[0]];
  const bool at_fault = gang.all(SlotPhase::kRefused);
  const uint32_t failures = job.record.prepare_failures() + static_cast<uint32_t>(failed.size());
  job.record.set_prepare_failures(failures);
  for (const int i : failed) AvoidNode(gang.slots()[i].node->name, &job.record);
  v1::ExitVerdict verdict;
  verdict.set_cause(v1::END_CAUSE_PREPARE_FAILED);
  verdict.set_message(
      absl::StrCat(first.node->name, ": ", first.failure, failed.size() == 1 ? "" : absl::StrCat("; ", failed.size(), " hosts in all")));
  verdict.set_rank(-1);
  verdict.set_node(first.node->name);
  *verdict.mutable_time() = ToProtoTime(now_);
  if (at_fault || failures > kMaxPrepareFailures + gang.size() / 8) {
    EndGang(job, std::move(verdict));
  } else {
    FailGang(job, std::move(verdict));
  }
}

}  // namespace closeknit
