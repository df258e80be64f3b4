// Another fabric, on a live cluster: what stays keeps its work.
#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster_model/readers.h"
#include "proto/base/check.h"
#include "proto/base/errors.h"
#include "proto/base/host_list.h"
#include "proto/base/status_macros.h"
#include "scheduler/core/core_impl.h"
#include "scheduler/core/wire.h"

namespace closeknit {
namespace {

constexpr char kNotInFabric[] = "HostNotInFabric";

FabricDiff Compare(const Fabric* before, const Fabric& after) {
  if (before != nullptr) return CompareFabrics(*before, after);
  FabricDiff diff;
  for (const Host& host : after.hosts()) diff.added.push_back(host.name);
  return diff;
}

void AddFolded(const std::vector<std::string>& names, google::protobuf::RepeatedPtrField<std::string>* lists) {
  if (!names.empty()) *lists->Add() = FoldHostSet(names);
}

}  // namespace

absl::StatusOr<v1::ApplyTopologyResponse> CoreImpl::ApplyFabric(const v1::ApplyTopologyRequest& request,
                                                                std::shared_ptr<const Fabric> fabric) {
  CHECK(fabric != nullptr) << "the shell reads the description before it makes the event";
  const FabricDiff diff = Compare(view_.has_value() ? &view_->fabric() : nullptr, *fabric);
  RETURN_IF_ERROR(CheckRemovable(diff.removed));
  const bool same = fabric_record_.has_value() && fabric_record_->description() == request.description();
  const uint64_t version = fabric_record_.has_value() ? fabric_record_->version() : 0;
  v1::ApplyTopologyResponse response;
  AddFolded(diff.added, response.mutable_hosts_added());
  AddFolded(diff.removed, response.mutable_hosts_removed());
  AddFolded(diff.moved, response.mutable_hosts_moved());
  response.set_hosts_total(static_cast<uint32_t>(fabric->hosts().size()));
  response.set_version(request.dry_run() || same ? version : version + 1);
  if (request.dry_run() || same) return response;
  v1::FabricRecord record;
  record.set_description(request.description());
  record.set_format(request.format());
  record.set_file_name(request.file_name());
  record.set_version(version + 1);
  effects_.writes.push_back({Table::kFabric, "fabric", record.SerializeAsString()});
  fabric_record_ = std::move(record);
  InstallFabric(std::move(fabric));
  return response;
}

absl::Status CoreImpl::CheckRemovable(absl::Span<const std::string> removed) const {
  std::vector<std::string> busy;
  for (const std::string& name : removed) {
    const Node* const node = FindNode(name);
    if (node != nullptr && !node->parts.empty() && !node->drained()) busy.push_back(name);
  }
  if (busy.empty()) return absl::OkStatus();
  const std::string hosts = FoldHostSet(busy);
  return Precondition("HOST_BUSY", absl::StrCat("node/", hosts),
                      absl::StrCat(hosts, busy.size() == 1 ? " runs" : " run", " something and would be removed; drain ",
                                   busy.size() == 1 ? "it" : "them", " first: knit drain ", hosts));
}

// O(hosts + shapes * Place).
void CoreImpl::InstallFabric(std::shared_ptr<const Fabric> fabric) {
  for (Node* const node : node_of_host_) {
    if (!fabric->FindHost(node->name).has_value()) RemoveFromFabric(*node);
  }
  if (view_.has_value()) {
    absl::StatusOr<ClusterView> moved = view_->MovedTo(fabric);
    CHECK(moved.ok()) << moved.status().ToString();  // hosts that are gone hold nothing any more
    view_ = *std::move(moved);
  } else {
    view_.emplace(fabric);
  }
  idle_.emplace(fabric);
  ideal_.emplace(fabric);
  snapshot_ = nullptr;
  node_of_host_.assign(fabric->hosts().size(), nullptr);
  for (uint32_t h = 0; h < node_of_host_.size(); ++h) {
    const std::string& name = fabric->host(HostId{h}).name;
    Node* node = FindNode(name);
    if (node == nullptr) node = &AddNode(name);
    node_of_host_[h] = node;
    AddToFabric(*node, HostId{h});
  }
  shapes_.MoveTo(*ideal_);
  idle_seen_ = 0;
}

// Its work goes on, out of the view, and is reported.
void CoreImpl::RemoveFromFabric(Node& node) {
  for (Part& part : node.parts) {
    if (part.in_view) view_->Release(*node.host, part.job, part.attempt);
    part.in_view = false;
    JobEntry* const job = FindJob(part.job);
    if (job == nullptr || part.slot == Part::kLeftover) continue;
    SetReason(*job, kNotInFabric, absl::StrCat("the fabric no longer has ", node.name, "; the ranks on it run on"));
  }
  node.host = std::nullopt;
  Touch(node);
}

void CoreImpl::AddToFabric(Node& node, HostId host) {
  node.host = host;
  for (Part& part : node.parts) {
    if (part.in_view) continue;
    const Allocation allocation = {.job = part.job, .attempt = part.attempt, .gpus = part.gpus};
    part.in_view = view_->Allocate(host, allocation).ok();
    JobEntry* const job = FindJob(part.job);
    if (job != nullptr && job->job->reason_code() == kNotInFabric) SetReason(*job, "", "");
  }
  if (node.connected()) {
    const google::protobuf::RepeatedPtrField<v1::Gpu> gpus(node.gpus.begin(), node.gpus.end());
    SetHardware(node, gpus);
  }
  UpdateAvailability(node);
}

}  // namespace closeknit
