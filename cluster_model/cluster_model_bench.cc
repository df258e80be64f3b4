// How long it takes to read a fabric, to take a snapshot of a view, and to change one.
#include <benchmark/benchmark.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "cluster_model/cluster_view.h"
#include "cluster_model/readers.h"
#include "proto/base/check.h"

namespace closeknit {
namespace {

constexpr char kEstate[] = "fabric:\n  - {pod: \"p[1-125]\", rack: \"{pod}r[001-175]\", host: \"{rack}h[1-2]\"}\n";  // 43,750 hosts

std::string SlurmConf() {  // 3,072 hosts
  std::string conf;
  for (int rack = 0; rack < 1536; ++rack) absl::StrAppend(&conf, "SwitchName=r", rack, " Nodes=r", rack, "h[1-2]\n");
  for (int pod = 0; pod < 8; ++pod) absl::StrAppend(&conf, "SwitchName=p", pod, " Switches=r[", pod * 192, "-", pod * 192 + 191, "]\n");
  return conf + "SwitchName=core Switches=p[0-7]\n";
}

void Read(benchmark::State& state, const std::string& contents) {
  for (auto _ : state) CHECK_OK(ReadFabric(contents, "bench").status());
}
BENCHMARK_CAPTURE(Read, SlurmConf3072Hosts, SlurmConf())->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Read, Yaml43750Hosts, std::string(kEstate))->Unit(benchmark::kMillisecond);

std::shared_ptr<const Fabric> Estate() { return std::make_shared<const Fabric>(ReadFabric(kEstate, "bench").value()); }

void SnapshotOf43750Hosts(benchmark::State& state) {
  ClusterView view(Estate());
  for (uint32_t h = 0; h < view.fabric().hosts().size(); h += 2) CHECK_OK(view.Allocate(HostId{h}, {1, 1, GpuSet::First(8)}));
  for (auto _ : state) {
    ClusterView snapshot = view;
    benchmark::DoNotOptimize(&snapshot);
  }
}
BENCHMARK(SnapshotOf43750Hosts)->Unit(benchmark::kMillisecond);

void AllocateAndRelease(benchmark::State& state) {
  ClusterView view(Estate());
  uint32_t h = 0;
  for (auto _ : state) {
    CHECK_OK(view.Allocate(HostId{h}, {1, 1, GpuSet::First(8)}));
    CHECK(view.Release(HostId{h}, 1, 1));
    h = (h + 7919) % view.fabric().hosts().size();
  }
}
BENCHMARK(AllocateAndRelease);

}  // namespace
}  // namespace closeknit

BENCHMARK_MAIN();
