// The state after a restart: what the store holds, with every host down until its agent connects and says what it runs.
#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/proto_time.h"
#include "proto/base/status_macros.h"
#include "scheduler/core/core_impl.h"

namespace closeknit {
namespace {

constexpr uint32_t kSchemaVersion = 1;

absl::Status Contradiction(const JobEntry& job, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the store contradicts itself: job ", job.id, " ", what));
}

GpuSet GpusOf(const v1::JobRecord& record, int slot) {
  GpuSet gpus;
  if (record.slot_gpus().empty()) return gpus;
  for (const uint32_t gpu : record.slot_gpus(record.slot_gpus_size() == 1 ? 0 : slot).gpus()) gpus.Add(static_cast<int>(gpu));
  return gpus;
}

}  // namespace

absl::StatusOr<Effects> CoreImpl::Load(StoredState stored, absl::Time now) {
  now_ = now;
  if (meta_.schema_version() > kSchemaVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the store has schema ", meta_.schema_version(), ", this program knows ", kSchemaVersion));
  }
  if (meta_.next_job_id() == 0) meta_.set_next_job_id(1);
  node_version_ = meta_.term() << 32;  // above all that were published before
  if (stored.fabric != nullptr) {
    fabric_record_ = std::move(stored.fabric_record);
    InstallFabric(std::move(stored.fabric));
  }
  // Of hosts that are out of the fabric, only those that hold something stay.
  for (v1::NodeRecord& record : stored.nodes) {
    Node* node = FindNode(record.name());
    if (node == nullptr) node = &AddNode(record.name());
    node->record = std::move(record);
    node->down_reason = "its agent has not connected since the scheduler's start";
    UpdateAvailability(*node);
  }
  for (auto& [key, request] : stored.requests) requests_[key] = std::move(request);
  for (v1::JobRecord& record : stored.jobs) RETURN_IF_ERROR(LoadJob(std::move(record)));

  std::vector<JobEntry*> jobs;
  for (auto& [id, job] : jobs_) jobs.push_back(job.get());
  absl::c_sort(jobs, [](const JobEntry* a, const JobEntry* b) { return a->id < b->id; });
  for (JobEntry* const job : jobs) {
    if (!HasEnded(*job->job) && !IsPending(*job->job)) RETURN_IF_ERROR(LoadGang(*job));
  }
  LoadQueue(jobs);
  Effects effects = Flush();
  effects.jobs.clear();
  for (const JobEntry* const job : jobs) effects.jobs.push_back(job->job);
  return effects;
}

absl::Status CoreImpl::LoadJob(v1::JobRecord record) {
  auto owned = std::make_unique<JobEntry>();
  JobEntry& job = *owned;
  job.id = record.job().job_id();
  job.job = std::make_shared<v1::Job>(std::move(*record.mutable_job()));
  record.clear_job();
  job.record = std::move(record);
  if (job.id == 0 || job.id >= meta_.next_job_id()) {
    return Contradiction(job, absl::StrCat("is not below the next id, ", meta_.next_job_id()));
  }
  if (!jobs_.emplace(job.id, std::move(owned)).second) return Contradiction(job, "is there twice");
  if (!HasEnded(*job.job)) job.shape = shapes_.Acquire(job.job->spec(), 0, ideal_.has_value() ? &*ideal_ : nullptr);
  if (job.job->array_job_id() == 0) return absl::OkStatus();
  ArrayEntry& array = arrays_[job.job->array_job_id()];
  ++array.counts.tasks;
  array.counts.ended += HasEnded(*job.job);
  array.counts.started += HasEnded(*job.job) || job.job->has_start_time();
  array.counts.completed += job.job->state() == v1::JOB_STATE_COMPLETED;
  if (array.counts.tasks == 1) {
    const absl::StatusOr<ArraySpec> spec = ParseArraySpec(job.job->spec().array(), config_.max_array_tasks);
    if (spec.ok()) array.at_once = spec->at_once;
  }
  return absl::OkStatus();
}

absl::Status CoreImpl::LoadGang(JobEntry& job) {
  const v1::Attempt& attempt = job.job->attempt();
  if (attempt.placement().hosts().empty()) return Contradiction(job, "is live without hosts");
  if (attempt.number() >= job.record.next_attempt()) return Contradiction(job, "has an attempt that was not counted");
  std::vector<Slot> slots(attempt.placement().hosts_size());
  RETURN_IF_ERROR(LoadSlots(job, &slots));
  std::string outside;
  for (size_t i = 0; i < slots.size(); ++i) {
    Slot& slot = slots[i];
    const bool held = slot.phase != SlotPhase::kEnded || attempt.has_end_time();
    if (!held) continue;
    if (slot.node->host.has_value()) {
      const HostStatus& status = view_->status(*slot.node->host);
      if (!(status.allocated & slot.gpus).empty() || status.exclusive) {
        return Contradiction(job, absl::StrCat("and another live job hold the same GPU of ", slot.node->name));
      }
    } else {
      absl::StrAppend(&outside, outside.empty() ? "" : ", ", slot.node->name);
    }
    if (slot.node->FindPart(job.id, attempt.number()) != nullptr)
      return Contradiction(job, absl::StrCat("has ", slot.node->name, " twice"));
    Hold(*slot.node,
         {.job = job.id,
          .attempt = attempt.number(),
          .slot = static_cast<int>(i),
          .gpus = slot.gpus,
          .since = FromProtoTime(attempt.placed_time())},
         &job);
  }
  job.gang = std::make_unique<Gang>(attempt.number(), std::move(slots));
  job.gang->master_port = attempt.master_port();
  if (!outside.empty()) SetReason(job, "HostNotInFabric", absl::StrCat("the fabric no longer has ", outside, "; the ranks on it run on"));

  const absl::Duration grace = FromProtoDuration(job.job->spec().grace_period());
  switch (job.job->state()) {
    case v1::JOB_STATE_PREPARING:
      SetJobTimer(job, now_ + config_.prepare_timeout);
      break;
    case v1::JOB_STATE_RUNNING:
      if (job.job->spec().has_time_limit()) {
        SetJobTimer(job, FromProtoTime(job.job->start_time()) + FromProtoDuration(job.job->spec().time_limit()));
      }
      break;
    default:
      SetJobTimer(job, attempt.has_end_time() ? FromProtoTime(job.record.retry_time()) : now_ + grace + config_.stop_timeout);
  }
  return absl::OkStatus();
}

// Slots as far as the record tells; the agents' inventories tell the rest.
absl::Status CoreImpl::LoadSlots(const JobEntry& job, std::vector<Slot>* slots) {
  const v1::Attempt& attempt = job.job->attempt();
  const int count = static_cast<int>(slots->size());
  if (job.record.slot_gpus_size() > 1 && job.record.slot_gpus_size() != count)
    return Contradiction(job, "has GPUs of another number of slots");
  const auto& lingering = job.record.lingering_slots();
  for (int i = 0; i < count; ++i) {
    Slot& slot = (*slots)[i];
    const std::string& name = attempt.placement().hosts(i);
    slot.node = FindNode(name);
    if (slot.node == nullptr) slot.node = &AddNode(name);
    slot.gpus = GpusOf(job.record, i);
    const bool over = attempt.has_end_time() || (!lingering.empty() && !absl::c_linear_search(lingering, static_cast<uint32_t>(i)));
    if (over) {
      slot.phase = SlotPhase::kEnded;
    } else if (job.job->state() == v1::JOB_STATE_PREPARING) {
      slot.due = now_ + config_.prepare_timeout;
    } else {
      slot.phase = SlotPhase::kPrepared;
    }
  }
  return absl::OkStatus();
}

void CoreImpl::LoadQueue(absl::Span<JobEntry* const> jobs) {
  std::vector<const JobEntry*> ended;
  absl::flat_hash_map<JobId, absl::Time> unit_end;
  for (JobEntry* const job : jobs) {
    if (HasEnded(*job->job)) {
      const auto array = arrays_.find(job->unit());
      if (array == arrays_.end() || array->second.counts.ended == array->second.counts.tasks) ended.push_back(job);
      absl::Time& end = unit_end.try_emplace(job->unit(), absl::InfinitePast()).first->second;
      end = std::max(end, FromProtoTime(job->job->end_time()));
    } else if (!IsPending(*job->job)) {
      TakeArrayToken(*job);
    }
  }
  // Oldest first, an array's tasks together: in the order in which PurgeEnded takes them.
  const auto order = [&](const JobEntry* job) { return std::tuple(unit_end.at(job->unit()), job->unit(), job->id); };
  absl::c_sort(ended, [&](const JobEntry* a, const JobEntry* b) { return order(a) < order(b); });
  for (const JobEntry* const job : ended) ended_.push_back(job->id);
  for (JobEntry* const job : jobs) {
    if (!IsPending(*job->job)) continue;
    ++pending_;
    WatchDependencies(*job);
    Enqueue(*job);
  }
}

}  // namespace closeknit
