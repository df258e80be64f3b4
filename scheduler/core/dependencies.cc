// What pending jobs wait for: other jobs' starts and ends.
//
// A dependency is looked at when its target starts or ends, never polled. When a target has ended, everything that named it is settled in
// the same step; so a target that is not known any more (purged) was satisfied.
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/proto_time.h"
#include "scheduler/core/core_impl.h"

namespace closeknit {
namespace {

absl::string_view Word(v1::DependencyType type) {
  switch (type) {
    case v1::DEPENDENCY_TYPE_AFTER_OK:
      return "afterok";
    case v1::DEPENDENCY_TYPE_AFTER_NOT_OK:
      return "afternotok";
    case v1::DEPENDENCY_TYPE_AFTER_ANY:
      return "afterany";
    default:
      return "after";
  }
}

}  // namespace

CoreImpl::DependencyState CoreImpl::StateOf(const v1::Dependency& dependency) const {
  TaskCounts unit;
  if (const auto array = arrays_.find(dependency.job_id()); array != arrays_.end()) {
    unit = array->second.counts;
  } else if (const JobEntry* target = FindJob(dependency.job_id()); target != nullptr) {
    const v1::Job& job = *target->job;
    unit = {1, HasEnded(job) || job.has_start_time(), HasEnded(job), job.state() == v1::JOB_STATE_COMPLETED};
  } else {
    return DependencyState::kSatisfied;
  }
  const bool all_ended = unit.ended == unit.tasks;
  switch (dependency.type()) {
    case v1::DEPENDENCY_TYPE_AFTER_OK:
      if (unit.ended > unit.completed) return DependencyState::kNever;
      return all_ended ? DependencyState::kSatisfied : DependencyState::kWaiting;
    case v1::DEPENDENCY_TYPE_AFTER_NOT_OK:
      if (!all_ended) return DependencyState::kWaiting;
      return unit.completed < unit.tasks ? DependencyState::kSatisfied : DependencyState::kNever;
    case v1::DEPENDENCY_TYPE_AFTER_ANY:
      return all_ended ? DependencyState::kSatisfied : DependencyState::kWaiting;
    default:  // AFTER
      return unit.started == unit.tasks ? DependencyState::kSatisfied : DependencyState::kWaiting;
  }
}

CoreImpl::DependencyState CoreImpl::DependenciesOf(const JobEntry& job, std::string* waits_for) const {
  DependencyState all = DependencyState::kSatisfied;
  for (const v1::Dependency& dependency : job.job->spec().dependencies()) {
    const DependencyState state = StateOf(dependency);
    if (state == DependencyState::kSatisfied) continue;
    const std::string name = absl::StrCat(Word(dependency.type()), ":", dependency.job_id());
    if (state == DependencyState::kNever) {
      *waits_for = name;
      return state;
    }
    absl::StrAppend(waits_for, waits_for->empty() ? "" : ", ", name);
    all = state;
  }
  return all;
}

void CoreImpl::WatchDependencies(JobEntry& job) {
  for (const v1::Dependency& dependency : job.job->spec().dependencies()) {
    if (StateOf(dependency) != DependencyState::kWaiting) continue;
    std::vector<JobId>& watchers = dependents_[dependency.job_id()];
    if (watchers.empty() || watchers.back() != job.id) watchers.push_back(job.id);
  }
}

void CoreImpl::CountStarted(const JobEntry& job) {
  if (const auto array = arrays_.find(job.unit()); array != arrays_.end()) {
    TaskCounts& counts = array->second.counts;
    if (++counts.started == counts.tasks) settle_.push_back(array->first);
  }
  settle_.push_back(job.id);
}

void CoreImpl::CountEnded(const JobEntry& job) {
  settle_.push_back(job.id);
  const auto array = arrays_.find(job.unit());
  if (array == arrays_.end()) {
    ended_.push_back(job.id);
    return;
  }
  TaskCounts& counts = array->second.counts;
  const bool completed = job.job->state() == v1::JOB_STATE_COMPLETED;
  ++counts.ended;
  counts.completed += completed;
  counts.started += !job.job->has_start_time();
  // Only these change an answer: the first failure, the last start, the last end.
  const bool first_failure = !completed && counts.ended - counts.completed == 1;
  const bool all_ended = counts.ended == counts.tasks;
  if (first_failure || counts.started == counts.tasks || all_ended) settle_.push_back(array->first);
  for (int i = 0; all_ended && i < counts.tasks; ++i) ended_.push_back(array->first + i);
}

// A queue, not recursion: chains of dependents may be a million long.
void CoreImpl::SettleDependents() {
  while (!settle_.empty()) {
    const JobId target = settle_.front();
    settle_.pop_front();
    const auto found = dependents_.find(target);
    if (found == dependents_.end()) continue;
    const std::vector<JobId> watchers = std::move(found->second);
    std::vector<JobId> still_waiting;
    for (const JobId id : watchers) {
      JobEntry* job = FindJob(id);
      if (job == nullptr || job->waiting != Waiting::kDependency) continue;
      Enqueue(*job);
      if (job->waiting == Waiting::kDependency) still_waiting.push_back(id);
    }
    // Enqueue may end jobs but adds no watchers.
    if (still_waiting.empty()) {
      dependents_.erase(target);
    } else {
      dependents_[target] = std::move(still_waiting);
    }
  }
}

}  // namespace closeknit
