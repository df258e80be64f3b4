// Changes become effects: each changed job and node once a step, as a record and as a version for readers.
#include <utility>

#include "proto/base/check.h"
#include "proto/base/proto_time.h"
#include "scheduler/core/core_impl.h"
#include "scheduler/core/wire.h"

namespace closeknit {

v1::Job& CoreImpl::Change(JobEntry& job) {
  if (!job.changed) {
    // Readers may hold the version at hand.
    job.job = std::make_shared<v1::Job>(*job.job);
    job.changed = true;
    changed_jobs_.push_back(&job);
  }
  return *job.job;
}

void CoreImpl::Touch(Node& node) {
  if (node.changed) return;
  node.changed = true;
  changed_nodes_.push_back(&node);
}

void CoreImpl::Note(Notice::Kind kind, const JobEntry& job, std::string node, std::string detail, absl::Duration elapsed) {
  effects_.notices.push_back({kind, job.id, job.job->attempt().number(), std::move(node), std::move(detail), elapsed});
}

void CoreImpl::NoteNode(const Node& node, std::string detail) {
  effects_.notices.push_back({Notice::Kind::kNodeState, 0, 0, node.name, std::move(detail), absl::ZeroDuration()});
}

template <typename Response>
void CoreImpl::Answer(CallId call, absl::StatusOr<Response> response) {
  if (call == 0) return;
  if (response.ok()) {
    effects_.replies.push_back({call, ReplyMessage(*std::move(response))});
  } else {
    effects_.replies.push_back({call, response.status()});
  }
}
template void CoreImpl::Answer(CallId call, absl::StatusOr<v1::SubmitJobResponse> response);
template void CoreImpl::Answer(CallId call, absl::StatusOr<v1::CancelJobResponse> response);
template void CoreImpl::Answer(CallId call, absl::StatusOr<v1::DrainNodesResponse> response);
template void CoreImpl::Answer(CallId call, absl::StatusOr<v1::ResumeNodesResponse> response);
template void CoreImpl::Answer(CallId call, absl::StatusOr<v1::ApplyTopologyResponse> response);
template void CoreImpl::Answer(CallId call, absl::StatusOr<std::shared_ptr<const ClusterView>> response);

Effects CoreImpl::Flush() {
  if (meta_changed_) effects_.writes.push_back({Table::kMeta, "meta", DeterministicBytes(meta_)});
  meta_changed_ = false;
  for (JobEntry* job : changed_jobs_) {
    job->changed = false;
    job->job->set_version(job->job->version() + 1);
    effects_.writes.push_back({Table::kJobs, JobKey(job->id), JobRecordBytes(job->record, *job->job)});
    effects_.jobs.push_back(job->job);
  }
  changed_jobs_.clear();
  // Out of the fabric, and nothing left on it.
  for (Node* node : changed_nodes_) {
    if (!node->host.has_value() && node->parts.empty()) RetireNode(*node);
  }
  std::erase_if(changed_nodes_, [](const Node* node) { return !node->host.has_value() && node->parts.empty(); });
  for (Node* node : changed_nodes_) {
    node->changed = false;
    auto described = std::make_shared<v1::Node>(Describe(*node));
    described->set_version(++node_version_);
    node->published = std::move(described);
    effects_.nodes.push_back(node->published);
  }
  changed_nodes_.clear();
  return std::exchange(effects_, Effects());
}

}  // namespace closeknit
