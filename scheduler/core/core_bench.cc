// What the core itself costs, without disk and sockets.
#include <benchmark/benchmark.h>

#include "absl/strings/str_cat.h"
#include "cluster_model/test_cluster.h"
#include "proto/base/check.h"
#include "scheduler/core/core.h"
#include "scheduler/core/testing/fake_agent.h"

namespace closeknit {
namespace {

// A core with every agent connected. Agents answer at once, outside of the measured time where a bench says so.
class Bench {
 public:
  explicit Bench(const std::string& shape) {
    StoredState stored;
    stored.meta.set_term(1);
    Effects effects;
    absl::StatusOr<std::unique_ptr<Core>> core = Core::Restore(std::move(stored), CoreConfig(), now_, &effects);
    CHECK_OK(core.status());
    core_ = *std::move(core);
    ApplyTopology topology;
    topology.request.set_description(shape);
    topology.fabric = Cluster(shape).shared_fabric();
    std::vector<Event> events = {topology};
    for (const Host& host : topology.fabric->hosts()) {
      agents_.push_back(std::make_unique<FakeAgent>(host.name, host.gpus));
      events.push_back(AgentConnected{agents_.size(), agents_.back()->Hello()});
    }
    Answer(core_->Apply(events, now_));
  }

  Core& core() { return *core_; }
  absl::Time now() const { return now_; }
  const std::vector<Event>& reports() const { return reports_; }
  std::vector<Event> TakeReports() { return std::move(reports_); }

  // The agents take the commands; what they say is in reports().
  void Answer(const Effects& effects) {
    reports_.clear();
    for (const AgentCommand& command : effects.commands) {
      for (v1::AgentMessage& message : agents_[command.session - 1]->Receive(command.message, now_)) {
        reports_.push_back(AgentReported{command.session, std::move(message)});
      }
    }
  }

  // Every running slot's ranks exit 0.
  std::vector<Event> Finish() {
    std::vector<Event> events;
    for (size_t i = 0; i < agents_.size(); ++i) {
      for (const auto& [key, slot] : std::map(agents_[i]->slots())) {
        std::optional<v1::AgentMessage> last;
        for (uint32_t rank = slot.first_rank; rank < slot.first_rank + slot.ranks; ++rank) {
          last = agents_[i]->ExitRank(key, rank, 0, 0, now_);
        }
        if (last.has_value()) events.push_back(AgentReported{i + 1, *std::move(last)});
      }
    }
    return events;
  }

 private:
  absl::Time now_ = absl::FromUnixSeconds(1'000'000'000);
  std::unique_ptr<Core> core_;
  std::vector<std::unique_ptr<FakeAgent>> agents_;
  std::vector<Event> reports_;
};

SubmitJob Job(int nodes, int gpus) {
  SubmitJob event{1, {}};
  event.request.set_user("ada");
  v1::JobSpec& spec = *event.request.mutable_spec();
  spec.set_name("train");
  spec.set_nodes(nodes);
  spec.set_gpus_per_node(gpus);
  spec.add_command("python3");
  spec.add_command("train.py");
  return event;
}

// Submits in batches of 64 behind a blocked head.
void BM_Submit(benchmark::State& state) {
  Bench bench("4 pods x 96 racks x 2 hosts");
  bench.core().Apply({Job(768, 8)}, bench.now());
  const std::vector<Event> batch(64, Job(1, 8));
  int64_t jobs = 0;
  for (auto _ : state) {
    Effects effects = bench.core().Apply(batch, bench.now());
    benchmark::DoNotOptimize(effects);
    jobs += static_cast<int64_t>(batch.size());
    if (jobs > 900'000) break;  // the queue's limit
  }
  state.SetItemsProcessed(jobs);
}
BENCHMARK(BM_Submit)->Iterations(5'000);

// Jobs of one host from submit to release, in batches; agents' work is not counted.
void BM_OneHostCycle(benchmark::State& state) {
  Bench bench("8 pods x 192 racks x 2 hosts");
  const std::vector<Event> batch(64, Job(1, 8));
  int64_t jobs = 0;
  const auto apply = [&](const std::vector<Event>& events) {
    Effects effects = bench.core().Apply(events, bench.now());
    state.PauseTiming();
    bench.Answer(effects);
    state.ResumeTiming();
  };
  for (auto _ : state) {
    apply(batch);                // PREPARE
    apply(bench.TakeReports());  // START
    apply(bench.TakeReports());  // STARTED
    state.PauseTiming();
    const std::vector<Event> finish = bench.Finish();
    state.ResumeTiming();
    apply(finish);  // RELEASE
    jobs += static_cast<int64_t>(batch.size());
  }
  state.SetItemsProcessed(jobs);
}
BENCHMARK(BM_OneHostCycle)->Iterations(200)->Unit(benchmark::kMillisecond);

// A gang of every host: submit to the last STARTED, the core's share.
void BM_GangStart(benchmark::State& state) {
  Bench bench("8 pods x 192 racks x 2 hosts");
  const int hosts = 3'072;
  for (auto _ : state) {
    Effects effects = bench.core().Apply({Job(hosts, 8)}, bench.now());
    for (int step = 0; step < 2; ++step) {
      state.PauseTiming();
      bench.Answer(effects);
      const std::vector<Event> reports = bench.TakeReports();
      CHECK(static_cast<int>(reports.size()) == hosts);
      state.ResumeTiming();
      // As they would come: in many batches.
      for (size_t i = 0; i < reports.size(); i += 256) {
        Effects more = bench.core().Apply(absl::MakeSpan(reports).subspan(i, 256), bench.now());
        if (!more.commands.empty()) effects = std::move(more);
      }
    }
    state.PauseTiming();
    bench.Answer(effects);
    bench.Answer(bench.core().Apply(bench.Finish(), bench.now()));
    state.ResumeTiming();
  }
}
BENCHMARK(BM_GangStart)->Iterations(20)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace closeknit

BENCHMARK_MAIN();
