#include "tests/fuzz/targets.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "cluster_model/cluster_view.h"
#include "cluster_model/fabric.h"
#include "cluster_model/readers.h"
#include "proto/base/check.h"
#include "proto/base/host_list.h"

namespace closeknit {
namespace {

constexpr FabricFormat kFormats[] = {FabricFormat::kYaml, FabricFormat::kSlurmConf, FabricFormat::kSlurmYaml, FabricFormat::kIbNetDiscover};

// "f:3:14: what", or the last line's "f: and 30 more errors".
void CheckErrorLine(absl::string_view line) {
  const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 3));
  CHECK(parts.size() >= 2 && parts[0] == "f") << line;
  if (parts.size() == 2) {
    CHECK(absl::EndsWith(line, " more errors")) << line;
    return;
  }
  int row = 0, column = 0;
  CHECK(parts.size() == 4 && absl::SimpleAtoi(parts[1], &row) && absl::SimpleAtoi(parts[2], &column)) << line;
  CHECK(row >= 1 && column >= 1) << line;
}

void CheckFabric(const Fabric& fabric) {
  CHECK(!fabric.hosts().empty());
  CHECK(fabric.top() >= 1 && fabric.top() <= kMaxTiers) << fabric.top();
  const Domain& root = fabric.domain(fabric.root());
  CHECK(root.tier == fabric.top() && root.host_count() == static_cast<int>(fabric.hosts().size()));
  int gpus = 0;
  for (uint32_t h = 0; h < fabric.hosts().size(); ++h) {
    const Host& host = fabric.host(HostId{h});
    CHECK(fabric.FindHost(host.name) == HostId{h}) << host.name;
    CHECK(host.gpus >= 1 && host.gpus <= 64) << host.name;
    gpus += host.gpus;
  }
  CHECK(gpus == fabric.total_gpus());
  for (Tier tier = 1; tier <= fabric.top(); ++tier) {
    uint32_t next = 0;  // the domains of a tier are all hosts, in order
    for (const DomainId id : fabric.DomainsAt(tier)) {
      const Domain& domain = fabric.domain(id);
      CHECK(domain.first_host.value == next && domain.end_host.value > next) << domain.name;
      CHECK(fabric.DomainOf(domain.first_host, tier) == id && fabric.FindDomain(domain.name) == id) << domain.name;
      next = domain.end_host.value;
    }
    CHECK(next == fabric.hosts().size());
  }
}

}  // namespace

void FuzzFabric(absl::string_view input) {
  // The first byte may force a format; most inputs are told by their contents.
  FabricFormat format = DetectFabricFormat(input);
  if (!input.empty() && input[0] >= '0' && input[0] <= '3') {
    format = kFormats[input[0] - '0'];
    input.remove_prefix(1);
  }
  absl::StatusOr<Fabric> fabric = ReadFabric(input, "f", format);
  if (!fabric.ok()) {
    CHECK(fabric.status().code() == absl::StatusCode::kInvalidArgument) << fabric.status();
    for (const absl::string_view line : absl::StrSplit(fabric.status().message(), '\n')) CheckErrorLine(line);
    return;
  }
  CheckFabric(*fabric);
  const FabricDiff diff = CompareFabrics(*fabric, *fabric);
  CHECK(diff.added.empty() && diff.removed.empty() && diff.moved.empty());
  const ClusterView view(std::make_shared<const Fabric>(*std::move(fabric)));
  CHECK_OK(view.CheckCounts());
}

void FuzzHostList(absl::string_view input) {
  const absl::StatusOr<std::vector<std::string>> hosts = ExpandHostList(input);
  if (!hosts.ok()) {
    CHECK(absl::StartsWith(hosts.status().message(), "host list, position ")) << hosts.status();
    return;
  }
  const absl::StatusOr<std::vector<std::string>> again = ExpandHostList(FoldHostList(*hosts));
  CHECK(again.ok() && *again == *hosts) << FoldHostList(*hosts);
  const absl::StatusOr<std::vector<std::string>> set = ExpandHostList(FoldHostSet(*hosts));
  CHECK(set.ok()) << FoldHostSet(*hosts);
  CHECK(std::set<std::string>(set->begin(), set->end()) == std::set<std::string>(hosts->begin(), hosts->end()));
}

}  // namespace closeknit
