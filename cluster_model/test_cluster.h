// Small clusters in one line, for tests only.
//
//   Cluster("2 pods x 3 racks x 2 hosts").Busy("h3,h7").Down("h1")
//   Cluster("4 racks x 2 hosts x 4 gpus")
//   Cluster("1+1+2+3+5 | 8")              racks of these sizes, in pods of 12 and 8 hosts
//
// Hosts are h1, h2, ... in fabric order, domains rack1, rack2, ..., pod1, ...; the root that joins the outermost ones is added and has the
// usual tier name ("core" above pods, "pod" above racks), unless there is only one outermost domain, which then is the root.
#ifndef CLOSEKNIT_CLUSTER_MODEL_TEST_CLUSTER_H_
#define CLOSEKNIT_CLUSTER_MODEL_TEST_CLUSTER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cluster_model/cluster_view.h"
#include "cluster_model/fabric.h"
#include "proto/base/check.h"
#include "proto/base/host_list.h"

namespace closeknit {

// Mistakes in its arguments end the test.
class Cluster {
 public:
  explicit Cluster(absl::string_view shape) : Cluster(BuildFabric(shape)) {}
  explicit Cluster(std::shared_ptr<const Fabric> fabric) : view_(std::move(fabric)) {}

  // All GPUs of the hosts are held by the job's first attempt.
  Cluster& Busy(absl::string_view hosts, JobId job = 1) {
    for (const HostId host : Hosts(hosts)) CHECK_OK(view_.Allocate(host, {job, 1, GpuSet::First(fabric().host(host).gpus)}));
    return *this;
  }
  // As many GPUs, from the first, on each host.
  Cluster& BusyGpus(absl::string_view hosts, int gpus, JobId job = 1) {
    for (const HostId host : Hosts(hosts)) CHECK_OK(view_.Allocate(host, {job, 1, GpuSet::First(gpus)}));
    return *this;
  }
  Cluster& Down(absl::string_view hosts) { return Add(hosts, Unavailable::kDown); }
  Cluster& Drained(absl::string_view hosts) { return Add(hosts, Unavailable::kDrained); }
  Cluster& Reserved(absl::string_view hosts) { return Add(hosts, Unavailable::kReserved); }
  Cluster& RailsDown(absl::string_view hosts, int rails = 1) {
    for (const HostId host : Hosts(hosts)) view_.SetRailsDown(host, rails);
    return *this;
  }
  Cluster& Missing(absl::string_view hosts, GpuSet gpus) {
    for (const HostId host : Hosts(hosts)) view_.SetPresent(host, view_.status(host).present - gpus);
    return *this;
  }

  ClusterView& view() { return view_; }
  const ClusterView& view() const { return view_; }
  operator const ClusterView&() const { return view_; }  // NOLINT(google-explicit-constructor): Place(Cluster("..."), request)
  const Fabric& fabric() const { return view_.fabric(); }
  const std::shared_ptr<const Fabric>& shared_fabric() const { return view_.shared_fabric(); }

  HostId Host(absl::string_view name) const {
    const std::optional<HostId> host = fabric().FindHost(name);
    CHECK(host.has_value()) << "no host " << name;
    return *host;
  }
  std::vector<HostId> Hosts(absl::string_view list) const {
    const absl::StatusOr<std::vector<std::string>> names = ExpandHostList(list);
    CHECK_OK(names.status());
    std::vector<HostId> hosts;
    for (const std::string& name : *names) hosts.push_back(Host(name));
    return hosts;
  }
  // "h[1-3]", in the order given.
  std::string Names(absl::Span<const HostId> hosts) const {
    std::vector<std::string> names;
    for (const HostId host : hosts) names.push_back(fabric().host(host).name);
    return FoldHostList(names);
  }

 private:
  struct Level {
    int count = 0;
    std::string noun;  // singular
  };

  static std::shared_ptr<const Fabric> BuildFabric(absl::string_view shape) {
    FabricDescription description = shape.find(" x ") == shape.npos && shape.find("host") == shape.npos ? Sizes(shape) : Product(shape);
    description.name = "test";
    for (size_t i = 0; i < description.hosts.size(); ++i) description.hosts[i].name = absl::StrCat("h", i + 1);
    absl::StatusOr<Fabric> fabric = Fabric::Build(std::move(description));
    CHECK_OK(fabric.status());
    return std::make_shared<const Fabric>(*std::move(fabric));
  }

  // "1+2 | 8"
  static FabricDescription Sizes(absl::string_view shape) {
    FabricDescription description;
    const std::vector<std::string> pods = absl::StrSplit(shape, '|');
    int racks = 0;
    for (const std::string& pod : pods) {
      FabricDescription::DomainEntry pod_entry{.name = absl::StrCat("pod", description.roots.size() + 1)};
      for (const absl::string_view size : absl::StrSplit(pod, '+')) {
        FabricDescription::DomainEntry rack{.name = absl::StrCat("rack", ++racks)};
        AddHosts(Number(size), 8, &description, &rack);
        pod_entry.child_domains.push_back(static_cast<int>(description.domains.size()));
        description.domains.push_back(std::move(rack));
      }
      description.roots.push_back(static_cast<int>(description.domains.size()));
      description.domains.push_back(std::move(pod_entry));
    }
    return description;
  }

  // "2 pods x 3 racks x 2 hosts [x 4 gpus]"
  static FabricDescription Product(absl::string_view shape) {
    std::vector<Level> levels;
    for (const absl::string_view part : absl::StrSplit(shape, " x ")) {
      const std::pair<std::string, std::string> words = absl::StrSplit(part, ' ');
      levels.push_back({Number(words.first), std::string(absl::StripSuffix(words.second, "s"))});
    }
    int gpus = 8;
    if (levels.back().noun == "gpu") {
      gpus = levels.back().count;
      levels.pop_back();
    }
    CHECK(!levels.empty() && levels.back().noun == "host") << "a shape ends in hosts: " << shape;
    if (levels.size() == 1) levels.insert(levels.begin(), {1, "rack"});
    FabricDescription description;
    for (size_t i = levels.size() - 1; i-- > 0;) description.tier_names.push_back(levels[i].noun);
    std::vector<int> made(levels.size());
    for (int i = 0; i < levels[0].count; ++i) description.roots.push_back(AddLevel(levels, 0, gpus, &made, &description));
    return description;
  }

  static int AddLevel(absl::Span<const Level> levels, size_t level, int gpus, std::vector<int>* made, FabricDescription* description) {
    FabricDescription::DomainEntry domain{.name = absl::StrCat(levels[level].noun, ++(*made)[level])};
    if (level + 2 == levels.size()) {
      AddHosts(levels.back().count, gpus, description, &domain);
    } else {
      for (int i = 0; i < levels[level + 1].count; ++i) {
        domain.child_domains.push_back(AddLevel(levels, level + 1, gpus, made, description));
      }
    }
    description->domains.push_back(std::move(domain));
    return static_cast<int>(description->domains.size()) - 1;
  }

  static void AddHosts(int count, int gpus, FabricDescription* description, FabricDescription::DomainEntry* domain) {
    for (int i = 0; i < count; ++i) {
      domain->hosts.push_back(static_cast<int>(description->hosts.size()));
      closeknit::Host host;
      host.gpus = gpus;
      host.rails = gpus;
      description->hosts.push_back(std::move(host));
    }
  }

  static int Number(absl::string_view text) {
    int number = 0;
    CHECK(absl::SimpleAtoi(text, &number) && number > 0) << "not a count: '" << text << "'";
    return number;
  }

  Cluster& Add(absl::string_view hosts, Unavailable reason) {
    for (const HostId host : Hosts(hosts)) view_.SetUnavailable(host, view_.status(host).unavailable | reason);
    return *this;
  }

  ClusterView view_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_TEST_CLUSTER_H_
