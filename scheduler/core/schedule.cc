// The queue and the scheduling pass.
//
// Policy: strictly by priority, then by submission. While the first job waits for other work to end, nothing of lower order starts: without
// knowing when work ends, any start could delay it. A job that no ending can help (its hosts are down, drained or resting) stalls instead
// and stands in nobody's way until a host's health changes.
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "placement/from_proto.h"
#include "proto/base/check.h"
#include "proto/base/errors.h"
#include "proto/base/proto_time.h"
#include "scheduler/core/core_impl.h"

namespace closeknit {
namespace {

uint64_t RootVersion(const ClusterView& view) { return view.version(view.fabric().root()); }

}  // namespace

void CoreImpl::Enqueue(JobEntry& job) {
  CHECK(IsPending(*job.job) && !job.queued) << "job " << job.id << " cannot be queued";
  if (job.job->spec().hold()) return Wait(job, Waiting::kHeld, "JobHeldUser", "held by its submitter");
  std::string waits_for;
  switch (DependenciesOf(job, &waits_for)) {
    case DependencyState::kWaiting:
      return Wait(job, Waiting::kDependency, "Dependency", absl::StrCat("waits for ", waits_for));
    case DependencyState::kNever: {
      v1::ExitVerdict verdict;
      verdict.set_cause(v1::END_CAUSE_DEPENDENCY_NEVER_SATISFIED);
      verdict.set_message(absl::StrCat(waits_for, " can never be satisfied"));
      verdict.set_rank(-1);
      *verdict.mutable_time() = ToProtoTime(now_);
      return EndJob(job, std::move(verdict));
    }
    case DependencyState::kSatisfied:
      break;
  }
  if (const absl::Time retry = FromProtoTime(job.record.retry_time()); job.record.has_retry_time() && retry > now_) {
    job.waiting = Waiting::kBackoff;  // Requeue has said why
    return SetJobTimer(job, retry);
  }
  if (!TakeArrayToken(job)) {
    return Wait(job, Waiting::kArrayLimit, "JobArrayTaskLimit",
                absl::StrCat("waits for one of its array's ", arrays_.at(job.unit()).at_once, " tasks at once to end"));
  }
  ChooseShape(job);
  job.waiting = Waiting::kNothing;
  job.queued = true;
  const bool next_in_shape = job.shape->stalled && !job.shape->ready.empty() && job.key() < *job.shape->ready.begin();
  queue_.Add(job.key(), job.shape);
  SetReason(job, "Priority", "waits for jobs of higher priority or earlier submission");
  if (next_in_shape) SetReason(job, "ReqNodeNotAvail", job.shape->idle_why);
}

void CoreImpl::Dequeue(JobEntry& job) {
  if (!job.queued) return;
  Shape& shape = *job.shape;
  queue_.Remove(job.key(), &shape);
  job.queued = false;
  if (blocked_head_ == job.id) blocked_head_ = 0;
  // Of a stalled shape, the first job tells why.
  if (shape.stalled) SetReason(*FindJob(shape.ready.begin()->job), "ReqNodeNotAvail", shape.idle_why);
}

void CoreImpl::Wait(JobEntry& job, Waiting waiting, const std::string& code, const std::string& reason) {
  job.waiting = waiting;
  SetReason(job, code, reason);
}

void CoreImpl::SetReason(JobEntry& job, const std::string& code, const std::string& reason) {
  if (job.job->reason_code() == code && job.job->reason() == reason) return;
  v1::Job& changed = Change(job);
  changed.set_reason_code(code);
  changed.set_reason(reason);
}

bool CoreImpl::TakeArrayToken(JobEntry& job) {
  const auto found = arrays_.find(job.unit());
  if (job.array_token || found == arrays_.end() || found->second.at_once == 0) return true;
  ArrayEntry& array = found->second;
  if (array.tokens >= array.at_once) {
    array.waiting.insert(job.id);
    return false;
  }
  array.waiting.erase(job.id);
  ++array.tokens;
  job.array_token = true;
  return true;
}

// At the end of a task: its token goes to the next one.
void CoreImpl::ReturnArrayToken(JobEntry& job) {
  const auto found = arrays_.find(job.unit());
  if (found == arrays_.end()) return;
  ArrayEntry& array = found->second;
  array.waiting.erase(job.id);
  if (!job.array_token) return;
  job.array_token = false;
  --array.tokens;
  if (array.waiting.empty()) return;
  JobEntry& next = *FindJob(*array.waiting.begin());
  Enqueue(next);
}

// Answers about a job that avoids hosts are its own.
void CoreImpl::ChooseShape(JobEntry& job) {
  const bool own = job.record.avoid_nodes_size() > 0 || !job.leftovers.empty();
  Shape* const before = job.shape;
  job.shape = shapes_.Acquire(job.job->spec(), own ? job.id : 0, ideal_.has_value() ? &*ideal_ : nullptr);
  if (before != nullptr) shapes_.Release(before);
  if (own) job.shape->blocked_at = job.shape->idle_asked_at = 0;
}

void CoreImpl::Schedule() {
  pass_unfinished_ = false;
  if (!view_.has_value()) return;
  if (idle_seen_ != RootVersion(*idle_)) {
    idle_seen_ = RootVersion(*idle_);
    queue_.Wake();
  }
  for (int placements = 0; placements < kMaxPlacementsPerPass; ++placements) {
    const std::optional<JobQueue::Front> front = queue_.front();
    if (!front.has_value() || front->shape->blocked_at == RootVersion(*view_)) return;
    JobEntry& job = *FindJob(front->key.job);
    if (!TryStart(job) && !job.shape->stalled) return;
  }
  pass_unfinished_ = true;
}

// Whether it has started; if not, its shape is stalled or blocks the queue.
bool CoreImpl::TryStart(JobEntry& job) {
  const absl::StatusOr<Placement> placement = job.shape->request.ok() ? PlaceJob(job, *view_) : job.shape->request.status();
  if (!placement.ok()) {
    Blocked(job, placement.status());
    return false;
  }
  Dequeue(job);
  std::vector<Slot> slots(placement->hosts.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    slots[i].node = &NodeOf(placement->hosts[i]);
    slots[i].gpus = placement->gpus[i];
  }
  StartAttempt(job, std::move(slots), ToProto(*placement, view_->fabric()));
  return true;
}

GangRequest CoreImpl::RequestOf(const JobEntry& job, Avoid avoid) const {
  GangRequest request = *job.shape->request;
  if (job.record.avoid_nodes().empty() && job.leftovers.empty()) return request;
  const auto exclude = [&](const Node* node) {
    if (node != nullptr && node->host.has_value()) request.exclude.push_back(*node->host);
  };
  for (const Node* node : job.leftovers) exclude(node);
  for (const std::string& name : job.record.avoid_nodes()) {
    const Node* node = FindNode(name);
    if (avoid == Avoid::kAll || (node != nullptr && node->resting())) exclude(node);
  }
  absl::c_sort(request.exclude);
  request.exclude.erase(std::unique(request.exclude.begin(), request.exclude.end()), request.exclude.end());
  return request;
}

bool CoreImpl::AvoidsRestedHosts(const JobEntry& job) const {
  return absl::c_any_of(job.record.avoid_nodes(), [&](const std::string& name) {
    const Node* node = FindNode(name);
    return node != nullptr && !node->resting();
  });
}

// Elsewhere first; where there is no elsewhere, hosts whose back-off is over get another chance.
absl::StatusOr<Placement> CoreImpl::PlaceJob(const JobEntry& job, const ClusterView& view) const {
  if (job.record.avoid_nodes().empty() && job.leftovers.empty()) return Place(view, *job.shape->request);
  absl::StatusOr<Placement> placement = Place(view, RequestOf(job, Avoid::kAll));
  if (placement.ok() || !AvoidsRestedHosts(job)) return placement;
  return Place(view, RequestOf(job, Avoid::kResting));
}

void CoreImpl::Blocked(JobEntry& job, const absl::Status& status) {
  Shape& shape = *job.shape;
  if (shape.idle_asked_at != RootVersion(*idle_)) {
    shape.idle_asked_at = RootVersion(*idle_);
    const absl::Status idle = shape.request.ok() ? PlaceJob(job, *idle_).status() : shape.request.status();
    shape.fits_idle = idle.ok();
    const std::optional<Unplaceable> why = GetUnplaceable(idle);
    shape.idle_why = why.has_value() ? why->why : std::string(idle.message());
  }
  if (!shape.fits_idle) {
    SetReason(job, "ReqNodeNotAvail", shape.idle_why);
    return queue_.Stall(&shape);
  }
  shape.blocked_at = RootVersion(*view_);
  if (blocked_head_ != job.id) {
    JobEntry* const before = FindJob(blocked_head_);
    if (before != nullptr && before->queued) SetReason(*before, "Priority", "waits for jobs of higher priority or earlier submission");
    blocked_head_ = job.id;
  }
  const std::optional<Unplaceable> why = GetUnplaceable(status);
  SetReason(job, "Resources", why.has_value() ? why->why : std::string(status.message()));
}

}  // namespace closeknit
