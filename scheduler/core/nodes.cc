// Hosts: drain, resume, back-off, hardware, and what they hold.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/errors.h"
#include "proto/base/host_list.h"
#include "proto/base/proto_time.h"
#include "proto/base/status_macros.h"
#include "scheduler/core/core_impl.h"
#include "scheduler/core/wire.h"

namespace closeknit {

absl::StatusOr<std::vector<Node*>> CoreImpl::NodesNamed(const google::protobuf::RepeatedPtrField<std::string>& lists) {
  if (lists.empty()) return InvalidField("nodes", "empty; host lists are needed, e.g. \"h[001-004]\"");
  std::vector<Node*> nodes;
  absl::flat_hash_set<Node*> seen;
  for (int i = 0; i < lists.size(); ++i) {
    const std::string field = absl::StrCat("nodes[", i, "]");
    const absl::StatusOr<std::vector<std::string>> names = ExpandHostList(lists[i]);
    if (!names.ok()) return InvalidField(field, names.status().message());
    for (const std::string& name : *names) {
      Node* const node = FindNode(name);
      if (node == nullptr) return InvalidField(field, absl::StrCat("no host '", name, "' in the fabric"));
      if (seen.insert(node).second) nodes.push_back(node);
    }
  }
  if (nodes.empty()) return InvalidField("nodes", "names no host");
  return nodes;
}

absl::StatusOr<v1::DrainNodesResponse> CoreImpl::Drain(const v1::DrainNodesRequest& request) {
  RETURN_IF_ERROR(CheckText("reason", request.reason(), 1'024));
  if (request.reason().empty()) return InvalidField("reason", "empty; a word for the colleague who finds the host drained is needed");
  RETURN_IF_ERROR(CheckText("user", request.user(), 128));
  ASSIGN_OR_RETURN(const std::vector<Node*> nodes, NodesNamed(request.nodes()));
  v1::DrainNodesResponse response;
  for (Node* const node : nodes) {
    node->record.set_drained_by_user(true);
    node->record.set_reason(request.reason());
    node->record.set_reason_user(request.user());
    *node->record.mutable_reason_time() = ToProtoTime(now_);
    StoreNode(*node);
    UpdateAvailability(*node);
    NoteNode(*node, absl::StrCat("drain: ", request.reason()));
    *response.add_nodes() = Describe(*node);
  }
  return response;
}

absl::StatusOr<v1::ResumeNodesResponse> CoreImpl::Resume(const v1::ResumeNodesRequest& request) {
  RETURN_IF_ERROR(CheckText("user", request.user(), 128));
  ASSIGN_OR_RETURN(const std::vector<Node*> nodes, NodesNamed(request.nodes()));
  v1::ResumeNodesResponse response;
  for (Node* const node : nodes) {
    node->record.set_drained_by_user(false);
    node->record.clear_reason();
    node->record.clear_reason_user();
    node->record.clear_reason_time();
    StoreNode(*node);
    // An operator's word: what failed is mended.
    node->prepare_failures = 0;
    node->prepare_failure.clear();
    host_timers_.Set(node->name, absl::InfiniteFuture(), &node->backoff_until);
    UpdateAvailability(*node);
    NoteNode(*node, "resume");
    *response.add_nodes() = Describe(*node);
  }
  return response;
}

void CoreImpl::SetHardware(Node& node, const google::protobuf::RepeatedPtrField<v1::Gpu>& gpus) {
  node.gpus.assign(gpus.begin(), gpus.end());
  Touch(node);
  if (!node.host.has_value()) return;
  GpuSet present;
  for (const v1::Gpu& gpu : gpus) {
    if (gpu.index() < 64) present.Add(static_cast<int>(gpu.index()));
  }
  present = present & GpuSet::First(view_->fabric().host(*node.host).gpus);
  view_->SetPresent(*node.host, present);
  idle_->SetPresent(*node.host, present);
}

void CoreImpl::UpdateAvailability(Node& node) {
  Touch(node);
  if (!node.host.has_value()) return;
  Unavailable reasons = Unavailable::kNone;
  if (!node.connected()) reasons = reasons | Unavailable::kDown;
  if (node.drained()) reasons = reasons | Unavailable::kDrained;
  if (node.resting()) reasons = reasons | Unavailable::kResting;
  view_->SetUnavailable(*node.host, reasons);
  idle_->SetUnavailable(*node.host, reasons);
}

void CoreImpl::BackOff(Node& node, const std::string& why) {
  ++node.prepare_failures;
  node.prepare_failure = why;
  const int doublings = std::min(node.prepare_failures - 1, 20);
  const absl::Duration backoff = std::min(config_.host_backoff_max, config_.host_backoff * (int64_t{1} << doublings));
  host_timers_.Set(node.name, now_ + backoff, &node.backoff_until);
  UpdateAvailability(node);
  NoteNode(node, absl::StrCat("no new work for ", absl::FormatDuration(backoff), ": ", why));
}

void CoreImpl::EndBackOff(Node& node) {
  host_timers_.Set(node.name, absl::InfiniteFuture(), &node.backoff_until);
  UpdateAvailability(node);
}

void CoreImpl::Hold(Node& node, Part part, const JobEntry* job) {
  CHECK(node.FindPart(part.job, part.attempt) == nullptr)
      << node.name << " holds job " << part.job << " attempt " << part.attempt << " twice";
  if (node.host.has_value()) {
    Allocation allocation = {.job = part.job, .attempt = part.attempt, .gpus = part.gpus};
    if (job != nullptr && job->job->spec().has_time_limit()) {
      const absl::Time start = job->job->has_start_time() ? FromProtoTime(job->job->start_time()) : now_;
      allocation.expected_end = start + FromProtoDuration(job->job->spec().time_limit());
    }
    const absl::Status allocated = view_->Allocate(*node.host, allocation);
    // Placement gives what is free; only a stray slot can claim what another attempt has.
    CHECK(allocated.ok() || part.slot == Part::kLeftover) << allocated.ToString();
    part.in_view = allocated.ok();
  }
  if (part.since == absl::InfinitePast()) part.since = now_;
  node.parts.push_back(part);
  Touch(node);
}

void CoreImpl::Free(Node& node, JobId job, AttemptNumber attempt) {
  const auto part = absl::c_find_if(node.parts, [&](const Part& p) { return p.job == job && p.attempt == attempt; });
  if (part == node.parts.end()) return;
  if (part->in_view) view_->Release(*node.host, job, attempt);
  node.parts.erase(part);
  Touch(node);
}

Part* CoreImpl::HeldPart(const JobEntry& job, int slot) {
  Part* const part = job.gang->slots()[slot].node->FindPart(job.id, job.gang->attempt());
  return part != nullptr && part->slot == slot ? part : nullptr;
}

void CoreImpl::LeavePart(JobEntry& job, Part& part, Node& node) {
  part.slot = Part::kLeftover;
  Touch(node);
  if (!absl::c_linear_search(job.leftovers, &node)) job.leftovers.push_back(&node);
  if (!job.queued) return;
  Dequeue(job);
  Enqueue(job);
}

void CoreImpl::FreeLeftover(Node& node, JobId id, AttemptNumber attempt) {
  Free(node, id, attempt);
  JobEntry* const job = FindJob(id);
  if (job == nullptr || absl::c_any_of(node.parts, [&](const Part& part) { return part.job == id; })) return;
  if (std::erase(job->leftovers, &node) == 0 || !job->queued) return;
  Dequeue(*job);
  Enqueue(*job);
}

v1::Node CoreImpl::Describe(const Node& node) const {
  v1::Node described;
  described.set_name(node.name);
  described.set_reason_user(node.record.reason_user());
  int free_gpus = 0;
  bool full = false;
  if (node.host.has_value()) {
    const Fabric& fabric = view_->fabric();
    const Host& host = fabric.host(*node.host);
    for (Tier tier = 1; tier <= fabric.top(); ++tier) described.add_domains(fabric.domain(fabric.DomainOf(*node.host, tier)).name);
    described.mutable_features()->Add(host.features.begin(), host.features.end());
    described.set_gpus_total(host.gpus);
    const HostStatus& status = view_->status(*node.host);
    free_gpus = status.free().size();
    full = (status.present - status.allocated).empty() || status.exclusive;
    const int there = status.present.size();
    if (node.connected() && there < host.gpus) {
      described.add_conditions(absl::StrCat("GpuMissing: ", there, " of ", host.gpus, " GPUs"));
    }
    if (static_cast<int>(node.gpus.size()) > host.gpus) {
      described.add_conditions(absl::StrCat("GpuUnexpected: ", node.gpus.size(), " GPUs, the fabric says ", host.gpus));
    }
  } else {
    described.add_conditions("NotInFabric: its work goes on");
  }
  described.set_gpus_free(free_gpus);
  if (node.drained()) {
    described.set_state(node.parts.empty() ? v1::NODE_STATE_DRAINED : v1::NODE_STATE_DRAINING);
    described.set_reason(node.record.reason());
    *described.mutable_reason_time() = node.record.reason_time();
  } else if (!node.host.has_value()) {
    described.set_state(v1::NODE_STATE_DRAINING);
    described.set_reason("the fabric no longer has this host");
  } else if (!node.connected()) {
    described.set_state(v1::NODE_STATE_DOWN);
    described.set_reason(node.down_reason);
    if (node.down_since != absl::InfinitePast()) *described.mutable_reason_time() = ToProtoTime(node.down_since);
  } else {
    described.set_state(node.parts.empty() ? v1::NODE_STATE_IDLE : full ? v1::NODE_STATE_ALLOCATED : v1::NODE_STATE_MIXED);
  }
  if ((node.drained() || !node.host.has_value()) && !node.connected()) described.add_conditions(absl::StrCat("Down: ", node.down_reason));
  if (!node.prepare_failure.empty()) {
    described.add_conditions(absl::StrCat("PrepareFailed: ", node.prepare_failure, node.resting() ? " (no new work for now)" : ""));
  }
  described.mutable_conditions()->Add(node.conditions.begin(), node.conditions.end());
  described.mutable_gpus()->Add(node.gpus.begin(), node.gpus.end());
  for (const Part& part : node.parts) {
    v1::NodeAllocation& allocation = *described.add_allocations();
    allocation.set_job_id(part.job);
    allocation.set_attempt(part.attempt);
    for (int gpu = 0; gpu < 64; ++gpu) {
      if (part.gpus.Has(gpu)) allocation.add_gpus(gpu);
    }
  }
  described.set_address(node.record.address());
  described.set_agent_version(node.agent_version);
  if (node.last_seen != absl::InfinitePast()) *described.mutable_last_seen_time() = ToProtoTime(node.last_seen);
  return described;
}

Node& CoreImpl::AddNode(const std::string& name) {
  auto owned = std::make_unique<Node>();
  Node& node = *owned;
  node.name = name;
  node.record.set_name(name);
  CHECK(nodes_.emplace(name, std::move(owned)).second) << "host " << name << " exists";
  Touch(node);
  return node;
}

void CoreImpl::StoreNode(const Node& node) { effects_.writes.push_back({Table::kNodes, node.name, node.record.SerializeAsString()}); }

void CoreImpl::RetireNode(Node& node) {
  if (node.connected()) {
    CloseStream(node.session, NotFound("UNKNOWN_NODE", absl::StrCat("the fabric no longer has ", node.name)));
    sessions_.erase(node.session);
    node.session = 0;
  }
  host_timers_.Set(node.name, absl::InfiniteFuture(), &node.backoff_until);
  effects_.writes.push_back({Table::kNodes, node.name, std::nullopt});
  effects_.deleted_nodes.push_back(node.name);
  const auto found = nodes_.find(node.name);
  retired_nodes_.push_back(std::move(found->second));
  nodes_.erase(found);
}

}  // namespace closeknit
