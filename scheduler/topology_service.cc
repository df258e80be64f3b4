#include "scheduler/topology_service.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster_model/readers.h"
#include "proto/base/errors.h"
#include "scheduler/fabric_formats.h"
#include "scheduler/service_call.h"

namespace closeknit {
namespace {

absl::Status Check(const v1::ApplyTopologyRequest& request) {
  if (request.description().empty()) return InvalidField("description", "is empty; the contents of a topology file are needed");
  if (request.description().size() > kMaxDescriptionBytes) {
    return InvalidField("description", absl::StrCat("has ", request.description().size(), " bytes; at most ", kMaxDescriptionBytes));
  }
  return CheckText("file_name", request.file_name(), 4096);
}

}  // namespace

void ApplyDescription(CommitLoop* loop, v1::ApplyTopologyRequest request, CommitLoop::Answer answer) {
  if (const absl::Status status = Check(request); !status.ok()) return answer(status);
  if (request.user().empty()) request.set_user(kUnnamedUser);
  absl::StatusOr<Fabric> fabric = ReadFabricAs(request.description(), request.file_name(), request.format());
  if (!fabric.ok()) {
    const absl::Status& status = fabric.status();
    // The format's own error names its field already.
    return answer(status.GetPayload("type.googleapis.com/google.rpc.BadRequest").has_value()
                      ? status
                      : InvalidField("description", status.message()));
  }
  ApplyTopology event;
  event.request = std::move(request);
  event.fabric = std::make_shared<const Fabric>(*std::move(fabric));
  loop->Call(std::move(event), std::move(answer));
}

grpc::ServerUnaryReactor* TopologyService::ApplyTopology(grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
                                                         grpc::ByteBuffer* response) {
  auto request = std::make_shared<v1::ApplyTopologyRequest>();
  if (const absl::Status status = ParseRequest(*bytes, request.get()); !status.ok()) return FinishNow(context, status);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const bool accepted = workers_->Run([this, request, reactor, response] {
    ApplyDescription(loop_, std::move(*request), [reactor, response](absl::StatusOr<ReplyMessage> reply) {
      if (!reply.ok()) return FinishWith(reactor, response, reply.status());
      FinishWith(reactor, response, &std::get<v1::ApplyTopologyResponse>(*reply));
    });
  });
  if (!accepted) FinishWith(reactor, response, RetryAfter(absl::Seconds(1), "too many plans and topologies wait already"));
  return reactor;
}

v1::Topology DescribeFabric(const v1::FabricRecord& record, const Fabric& fabric) {
  v1::Topology topology;
  topology.set_description(record.description());
  topology.set_format(record.format());
  topology.set_version(record.version());
  topology.set_name(fabric.name());
  topology.set_hosts(static_cast<uint32_t>(fabric.hosts().size()));
  topology.set_gpus(static_cast<uint32_t>(fabric.total_gpus()));
  for (Tier tier = 1; tier <= fabric.top(); ++tier) {
    v1::TierSummary& summary = *topology.add_tiers();
    summary.set_name(std::string(fabric.TierName(tier)));
    const absl::Span<const DomainId> domains = fabric.DomainsAt(tier);
    summary.set_domains(static_cast<uint32_t>(domains.size()));
    int least = fabric.domain(domains[0]).host_count(), most = 0;
    double gbps = fabric.domain(domains[0]).uplinks.total_gbps();
    for (const DomainId id : domains) {
      const Domain& domain = fabric.domain(id);
      least = std::min(least, domain.host_count());
      most = std::max(most, domain.host_count());
      gbps = std::min(gbps, domain.uplinks.total_gbps());
    }
    summary.set_hosts_min(static_cast<uint32_t>(least));
    summary.set_hosts_max(static_cast<uint32_t>(most));
    summary.set_uplink_gbps(gbps);
  }
  return topology;
}

grpc::ServerUnaryReactor* TopologyService::GetTopology(grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
                                                       grpc::ByteBuffer* response) {
  v1::GetTopologyRequest request;
  if (const absl::Status status = ParseRequest(*bytes, &request); !status.ok()) return FinishNow(context, status);
  const std::optional<FabricVersion> fabric = model_->fabric();
  if (!fabric.has_value()) {
    return FinishNow(context, NotFound("NO_FABRIC", "no fabric yet: knit topo apply FILE, or start knitd with --topology FILE"));
  }
  return FinishNow(context, response, DescribeFabric(*fabric->record, *fabric->fabric));
}

}  // namespace closeknit
