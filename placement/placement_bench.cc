// The search's time on clusters of the reference sizes, at random occupancies. Time of one call each; the 99th percentile is what counts.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "absl/strings/str_cat.h"
#include "cluster_model/test_cluster.h"
#include "placement/evaluate.h"
#include "placement/place.h"

namespace closeknit {
namespace {

// Views of one fabric with so many percent of hosts taken, in runs of up to 32 hosts, as gangs leave them.
std::vector<ClusterView> Views(const std::string& shape, int count) {
  const Cluster empty(shape);
  const auto hosts = static_cast<uint32_t>(empty.fabric().hosts().size());
  std::mt19937 random(1);
  std::vector<ClusterView> views;
  for (int i = 0; i < count; ++i) {
    ClusterView view = empty.view();
    for (uint32_t taken = 0; taken < hosts * static_cast<uint32_t>(i * 97 / count) / 100;) {
      uint32_t host = static_cast<uint32_t>(random() % hosts);
      for (uint32_t run = 1 + static_cast<uint32_t>(random() % 32); run > 0 && host < hosts; --run, ++host) {
        if (!view.Allocate(HostId{host}, {.job = 1, .attempt = 1, .gpus = GpuSet::First(8)}).ok()) break;
        ++taken;
      }
    }
    views.push_back(std::move(view));
  }
  return views;
}

void Report(benchmark::State& state, std::vector<double> milliseconds) {
  std::sort(milliseconds.begin(), milliseconds.end());
  state.counters["p50_ms"] = milliseconds[milliseconds.size() / 2];
  state.counters["p99_ms"] = milliseconds[milliseconds.size() * 99 / 100];
  state.counters["max_ms"] = milliseconds.back();
}

// Rings of any size from 1 to all that is free.
void BM_PlaceRing(benchmark::State& state, const std::string& shape) {
  const std::vector<ClusterView> views = Views(shape, 40);
  std::mt19937 random(2);
  std::vector<double> times;
  for (auto _ : state) {
    const ClusterView& view = views[random() % views.size()];
    GangRequest request;
    request.slots = 1 + static_cast<int>(random() % static_cast<unsigned>(std::max(1, view.counts(view.fabric().root()).whole_free)));
    const auto start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(Place(view, request));
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  Report(state, std::move(times));
}
BENCHMARK_CAPTURE(BM_PlaceRing, RoCE_3072, std::string("8 pods x 192 racks x 2 hosts"))->Iterations(2000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_PlaceRing, InfiniBand_3072, std::string("12 pods x 8 racks x 32 hosts"))
    ->Iterations(2000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_PlaceRing, RoCE_43008, std::string("112 pods x 192 racks x 2 hosts"))->Iterations(60)->Unit(benchmark::kMillisecond);

void BM_PlaceOneHost(benchmark::State& state) {
  const std::vector<ClusterView> views = Views("8 pods x 192 racks x 2 hosts", 10);
  GangRequest request;
  size_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(Place(views[next++ % views.size()], request));
}
BENCHMARK(BM_PlaceOneHost)->Unit(benchmark::kMicrosecond);

void BM_Infeasible(benchmark::State& state) {
  const std::vector<ClusterView> views = Views("8 pods x 192 racks x 2 hosts", 10);
  GangRequest request;
  request.slots = 3'072;
  for (auto _ : state) benchmark::DoNotOptimize(Place(views.back(), request));
}
BENCHMARK(BM_Infeasible)->Unit(benchmark::kMicrosecond);

GangRequest Llama() {
  GangRequest request;
  request.slots = 2'048;
  request.dimensions = {{.name = "tp", .degree = 8, .bytes = 236.76e9},
                        {.name = "pp", .degree = 16, .bytes = 0.5369e9, .pattern = Pattern::kChain},
                        {.name = "dp", .degree = 128, .bytes = 18.836e9}};
  return request;
}

void BM_PlaceLlama3(benchmark::State& state) {
  const Cluster cluster("8 pods x 192 racks x 2 hosts");
  const GangRequest request = Llama();
  for (auto _ : state) benchmark::DoNotOptimize(Place(cluster, request));
}
BENCHMARK(BM_PlaceLlama3)->Unit(benchmark::kMillisecond);

void BM_Replace(benchmark::State& state) {
  Cluster cluster("8 pods x 192 racks x 2 hosts");
  GangRequest request;
  request.slots = 2'048;
  const Placement placement = *Place(cluster, request);
  for (const HostId host : placement.hosts) CHECK_OK(cluster.view().Allocate(host, {.job = 1, .attempt = 1, .gpus = GpuSet::First(8)}));
  std::mt19937 random(3);
  std::vector<double> times;
  for (auto _ : state) {
    const int failed = static_cast<int>(random() % 2'048);
    const auto start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(Replace(cluster, request, placement.hosts, {&failed, 1}));
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  Report(state, std::move(times));
}
BENCHMARK(BM_Replace)->Unit(benchmark::kMillisecond);

void BM_Evaluate24576Ranks(benchmark::State& state) {
  const Cluster cluster("8 pods x 192 racks x 2 hosts");
  GangRequest request;
  request.slots = 3'072;
  const Placement placement = *Place(cluster, request);
  for (auto _ : state) benchmark::DoNotOptimize(EvaluateTraffic(cluster.fabric(), request, placement.hosts));
}
BENCHMARK(BM_Evaluate24576Ranks)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace closeknit

BENCHMARK_MAIN();
