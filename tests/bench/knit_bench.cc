// knit-bench: the scheduler under load, with simulated agents and clients over real gRPC on loopback, and a real store.
//
// Scheduler, agents and clients share this process and its cores, so that the figures are a floor. docs/benchmarks.md has some.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "proto/base/check.h"
#include "proto/base/log.h"
#include "scheduler/testing/daemon_under_test.h"
#include "scheduler/testing/simulated_fleet.h"

namespace closeknit {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(5);

struct Options {
  int hosts = 3'072;
  int hosts_a_rack = 16;
  int gpus = 8;
  int connections = 48;
  int rounds = 10;
  int clients = 64;
  double seconds = 5;
  int jobs = 20'000;
  std::string directory;  // of the store; empty: a temporary one
};

// A scheduler with a store on disk, and agents for all its hosts.
class Cluster {
 public:
  Cluster(const Options& options, bool ranks_end_at_once, bool with_agents) {
    std::string name = (std::filesystem::temp_directory_path() / "knit-bench-XXXXXX").string();
    directory_ = options.directory.empty() ? mkdtemp(name.data()) : options.directory;
    absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(directory_);
    CHECK_OK(store.status());
    DaemonOptions daemon;
    daemon.agent_timeout = absl::Minutes(1);
    daemon.core.heartbeat_interval = absl::Seconds(5);
    daemon_ = std::make_unique<DaemonUnderTest>(*std::move(store), daemon);
    daemon_->Apply(DaemonUnderTest::Description(options.hosts / options.hosts_a_rack, options.hosts_a_rack, options.gpus));
    if (!with_agents) return;
    SimulatedFleet::Options fleet;
    fleet.target = daemon_->target();
    fleet.gpus = options.gpus;
    fleet.connections = options.connections;
    fleet.ranks_end_at_once = ranks_end_at_once;
    fleet.heartbeat = absl::Seconds(5);
    for (int i = 1; i <= options.hosts; ++i) fleet.hosts.push_back(absl::StrCat("h", i));
    fleet_ = std::make_unique<SimulatedFleet>(fleet);
    CHECK(fleet_->WaitWelcomed(kPatience)) << "agents were not welcomed";
  }
  ~Cluster() {
    fleet_ = nullptr;
    daemon_ = nullptr;
    std::filesystem::remove_all(directory_);
  }
  DaemonUnderTest& daemon() { return *daemon_; }
  SimulatedFleet& fleet() { return *fleet_; }

 private:
  std::string directory_;
  std::unique_ptr<DaemonUnderTest> daemon_;
  std::unique_ptr<SimulatedFleet> fleet_;
};

void Print(const std::string& what, std::vector<double> values, const std::string& unit) {
  std::sort(values.begin(), values.end());
  absl::PrintF("%-46s median %10.1f %s   min %10.1f   max %10.1f   (%d rounds)\n", what, values[values.size() / 2], unit, values.front(),
               values.back(), static_cast<int>(values.size()));
}

// One gang over every host: submit -> START at every host -> every rank's end known and committed.
void BenchGang(const Options& options) {
  Cluster cluster(options, /*ranks_end_at_once=*/true, /*with_agents=*/true);
  std::vector<double> started, completed;
  for (int i = 0; i < options.rounds; ++i) {
    const absl::Time begin = absl::Now();
    const uint64_t id = cluster.daemon().Submit(cluster.daemon().Spec(options.hosts, options.gpus));
    CHECK(cluster.fleet().WaitStarted(options.hosts, kPatience)) << "the gang did not start";
    started.push_back(absl::ToDoubleMilliseconds(absl::Now() - begin));
    cluster.daemon().WaitState(id, v1::JOB_STATE_COMPLETED);
    completed.push_back(absl::ToDoubleMilliseconds(absl::Now() - begin));
  }
  Print(absl::StrCat("gang of ", options.hosts, " hosts: submit -> all started"), started, "ms");
  Print(absl::StrCat("gang of ", options.hosts, " hosts: submit -> completed"), completed, "ms");
}

// Durable submits: each client has one call in flight, and its next id only after the last is on disk.
void BenchSubmits(const Options& options) {
  Cluster cluster(options, false, /*with_agents=*/false);
  struct Client {
    grpc::ClientContext* context = nullptr;
    v1::SubmitJobRequest request;
    v1::SubmitJobResponse response;
    std::unique_ptr<v1::JobService::Stub> stub;
    std::function<void()> submit;
  };
  std::atomic<int64_t> acknowledged = 0;
  std::atomic<int> running = options.clients;
  std::atomic<bool> stop = false;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 4; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channels.push_back(grpc::CreateCustomChannel(cluster.daemon().target(), grpc::InsecureChannelCredentials(), arguments));
  }
  for (int i = 0; i < options.clients; ++i) {
    auto client = std::make_unique<Client>();
    client->stub = v1::JobService::NewStub(channels[i % channels.size()]);
    *client->request.mutable_spec() = cluster.daemon().Spec(1, 8);
    client->request.set_user("ada");
    client->submit = [raw = client.get(), &acknowledged, &running, &stop] {
      raw->context = new grpc::ClientContext;
      raw->stub->async()->SubmitJob(raw->context, &raw->request, &raw->response,
                                    [raw, &acknowledged, &running, &stop](grpc::Status status) {
                                      CHECK(status.ok()) << status.error_message();
                                      delete raw->context;
                                      ++acknowledged;
                                      if (stop) {
                                        --running;
                                        return;
                                      }
                                      raw->submit();
                                    });
    };
    clients.push_back(std::move(client));
  }
  const absl::Time begin = absl::Now();
  for (const auto& client : clients) client->submit();
  absl::SleepFor(absl::Seconds(options.seconds));
  const double rate = static_cast<double>(acknowledged) / absl::ToDoubleSeconds(absl::Now() - begin);
  stop = true;
  while (running > 0) std::this_thread::yield();
  absl::PrintF("durable submits, %d clients with one call in flight each %*.0f /s\n", options.clients, 12, rate);
}

// Jobs of one host, from arrays that are queued at once, to their ends: place, PREPARE, START, end, release, each committed.
void BenchStarts(const Options& options) {
  Cluster cluster(options, /*ranks_end_at_once=*/true, /*with_agents=*/true);
  std::vector<double> rates;
  for (int i = 0; i < 3; ++i) {
    v1::JobSpec spec = cluster.daemon().Spec(1, options.gpus);
    spec.set_array(absl::StrCat("0-", 999));
    const absl::Time begin = absl::Now();
    for (int done = 0; done < options.jobs; done += 1'000) cluster.daemon().Submit(spec);
    CHECK(cluster.fleet().WaitStarted(options.jobs, kPatience)) << "jobs did not start";
    rates.push_back(options.jobs / absl::ToDoubleSeconds(absl::Now() - begin));
  }
  Print(absl::StrCat("1-host jobs started, ", options.jobs, " in arrays"), rates, "/s");
}

int Run(int argc, char** argv) {
  Options options;
  CLI::App app("knit-bench: the scheduler under load, with simulated agents over real gRPC on loopback", "knit-bench");
  app.add_option("--hosts", options.hosts, "simulated hosts")->capture_default_str();
  app.add_option("--connections", options.connections, "TCP connections that the agents' streams share")->capture_default_str();
  app.add_option("--rounds", options.rounds, "gangs")->capture_default_str();
  app.add_option("--clients", options.clients, "submitting clients")->capture_default_str();
  app.add_option("--seconds", options.seconds, "of submitting")->capture_default_str();
  app.add_option("--jobs", options.jobs, "1-host jobs; thousands")->capture_default_str();
  app.require_subcommand(1);
  app.add_subcommand("gang", "a gang over all hosts: submit to all started")->callback([&] { BenchGang(options); })->fallthrough();
  app.add_subcommand("submits", "durable submits a second")->callback([&] { BenchSubmits(options); })->fallthrough();
  app.add_subcommand("starts", "1-host jobs started a second")->callback([&] { BenchStarts(options); })->fallthrough();
  SetLog(LogLevel::kWarning, LogFormat::kText);
  CLI11_PARSE(app, argc, argv);
  return 0;
}

}  // namespace
}  // namespace closeknit

int main(int argc, char** argv) { return closeknit::Run(argc, argv); }
