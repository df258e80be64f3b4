#include "cluster_model/readers.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cluster_model/readers/formats.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

// The words that begin lines of ibnetdiscover's output.
constexpr absl::string_view kInfiniBandWords[] = {
    "vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid=", "Chassis ", "Non-Chassis "};

// What the line alone tells; nullopt: nothing.
std::optional<FabricFormat> FormatOfLine(absl::string_view line) {
  for (const absl::string_view word : kInfiniBandWords) {
    if (absl::StartsWith(line, word)) return FabricFormat::kIbNetDiscover;
  }
  if (absl::StartsWithIgnoreCase(line, "SwitchName") || absl::StartsWithIgnoreCase(line, "BlockName")) return FabricFormat::kSlurmConf;
  if (absl::StartsWith(line, "- ")) return FabricFormat::kSlurmYaml;  // a list; ours is a map
  if (line.find(':') != line.npos) return FabricFormat::kYaml;
  if (line.find('=') != line.npos) return FabricFormat::kSlurmConf;
  return std::nullopt;
}

// Names of the domains above a host, without the root's.
std::vector<absl::string_view> Path(const Fabric& fabric, HostId host) {
  std::vector<absl::string_view> path;
  for (Tier tier = 1; tier < fabric.top(); ++tier) path.push_back(fabric.domain(fabric.DomainOf(host, tier)).name);
  return path;
}

bool SameSettings(const Host& a, const Host& b) {
  return a.gpus == b.gpus && a.rails == b.rails && a.nics == b.nics && a.features == b.features && a.partitions == b.partitions;
}

}  // namespace

FabricFormat DetectFabricFormat(absl::string_view contents) {
  for (const absl::string_view text : absl::StrSplit(WithoutMark(contents), '\n')) {
    const absl::string_view line = absl::StripAsciiWhitespace(text);
    if (line.empty() || line[0] == '#' || line[0] == '%' || line == "---") continue;
    if (const std::optional<FabricFormat> format = FormatOfLine(line); format.has_value()) return *format;
    break;
  }
  return FabricFormat::kYaml;
}

absl::StatusOr<Fabric> ReadFabric(absl::string_view contents, absl::string_view file_name) {
  return ReadFabric(contents, file_name, DetectFabricFormat(contents));
}

absl::StatusOr<Fabric> ReadFabric(absl::string_view contents, absl::string_view file_name, FabricFormat format) {
  Diagnostics diagnostics(file_name);
  CheckSource(contents, &diagnostics);
  RETURN_IF_ERROR(diagnostics.ToStatus());
  contents = WithoutMark(contents);
  FabricDescription description;
  switch (format) {
    case FabricFormat::kYaml:
      description = ReadCloseknitYaml(contents, &diagnostics);
      break;
    case FabricFormat::kSlurmConf:
      description = ReadSlurmConf(contents, &diagnostics);
      break;
    case FabricFormat::kSlurmYaml:
      description = ReadSlurmYaml(contents, &diagnostics);
      break;
    case FabricFormat::kIbNetDiscover:
      description = ReadIbNetDiscover(contents, &diagnostics);
      break;
  }
  RETURN_IF_ERROR(diagnostics.ToStatus());
  absl::StatusOr<Fabric> fabric = Fabric::Build(std::move(description));
  // The readers report faults where they are; what only shows in the whole is reported at its beginning.
  if (!fabric.ok()) return absl::InvalidArgumentError(absl::StrCat(file_name, ":1:1: ", fabric.status().message()));
  return fabric;
}

FabricDiff CompareFabrics(const Fabric& before, const Fabric& after) {
  FabricDiff diff;
  for (const Host& host : before.hosts()) {
    if (!after.FindHost(host.name).has_value()) diff.removed.push_back(host.name);
  }
  for (uint32_t h = 0; h < after.hosts().size(); ++h) {
    const Host& host = after.host(HostId{h});
    const std::optional<HostId> old = before.FindHost(host.name);
    if (!old.has_value()) {
      diff.added.push_back(host.name);
    } else if (!SameSettings(before.host(*old), host) || Path(before, *old) != Path(after, HostId{h})) {
      diff.moved.push_back(host.name);
    }
  }
  return diff;
}

}  // namespace closeknit
