#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/commands.h"

namespace closeknit {
namespace {

constexpr size_t kMaxDescriptionBytes = 64 << 20;

void AppendHosts(absl::string_view what, const google::protobuf::RepeatedPtrField<std::string>& hosts, std::string* text) {
  if (!hosts.empty()) absl::StrAppend(text, what, absl::StrJoin(hosts, ","), "\n");
}

}  // namespace

int TopologyApply(Session& session, const std::string& file, bool dry_run) {
  const Output& output = session.output;
  const auto contents = ReadWholeFile(file, kMaxDescriptionBytes);
  if (!contents.ok()) return Fail(output, contents.status());
  v1::ApplyTopologyRequest request;
  request.set_description(*contents);
  request.set_file_name(file);
  request.set_dry_run(dry_run);
  request.set_user(CallerName());
  const auto response = session.connection->Call(session.connection->topology(), &v1::TopologyService::Stub::ApplyTopology, request);
  if (!response.ok()) return Fail(output, response.status());
  if (output.structured()) {
    PrintMessage(output, *response);
    return kOk;
  }
  std::string text;
  AppendHosts("added    ", response->hosts_added(), &text);
  AppendHosts("removed  ", response->hosts_removed(), &text);
  AppendHosts("changed  ", response->hosts_moved(), &text);
  if (text.empty()) text = "no change\n";
  absl::StrAppendFormat(&text, "%u hosts, version %u%s\n", response->hosts_total(), response->version(),
                        dry_run ? " (dry run: nothing was changed)" : "");
  *output.out << text << std::flush;
  return kOk;
}

int TopologyShow(Session& session, bool description) {
  const Output& output = session.output;
  const auto topology =
      session.connection->Call(session.connection->topology(), &v1::TopologyService::Stub::GetTopology, v1::GetTopologyRequest());
  if (!topology.ok()) return Fail(output, topology.status());
  if (output.structured()) {
    PrintMessage(output, *topology);
  } else if (description) {
    *output.out << topology->description() << std::flush;
  } else {
    *output.out << topology->name() << ": " << topology->hosts() << " hosts, " << topology->gpus() << " GPUs, version "
                << topology->version() << "\n";
    Table table({{"TIER"}, {"DOMAINS", Align::kRight}, {"HOSTS EACH", Align::kRight}, {"UPLINK GBIT/S", Align::kRight}});
    for (const v1::TierSummary& tier : topology->tiers()) {
      const std::string hosts =
          tier.hosts_min() == tier.hosts_max() ? absl::StrCat(tier.hosts_max()) : absl::StrCat(tier.hosts_min(), "-", tier.hosts_max());
      table.Row(
          {tier.name(), absl::StrCat(tier.domains()), hosts, tier.uplink_gbps() == 0 ? "-" : absl::StrFormat("%g", tier.uplink_gbps())});
    }
    PrintTable(output, table);
  }
  return kOk;
}

}  // namespace closeknit
