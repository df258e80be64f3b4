// knitd: the scheduler's daemon.
#include <csignal>
#include <cstdio>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/base/log.h"
#include "scheduler/daemon.h"

namespace closeknit {
namespace {

// Exit codes: 0 stopped by SIGTERM or SIGINT; 1 cannot run (message); 2 bad flag (from CLI11: see Run).
constexpr int kCannotRun = 1, kBadFlag = 2;

void AddDuration(CLI::App& app, const std::string& name, absl::Duration* value, const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [name, value](const std::string& text) {
           if (!absl::ParseDuration(text, value) || *value <= absl::ZeroDuration()) {
             throw CLI::ValidationError(name, absl::StrCat("'", text, "' is not a time above zero, such as 500ms, 30s, 2m"));
           }
         },
         help)
      ->default_str(absl::FormatDuration(*value))
      ->type_name("TIME");
}

void AddFlags(CLI::App& app, DaemonOptions* options, std::string* metrics, LogFormat* format, LogLevel* level) {
  app.add_option("--listen", options->listen, "HOST:PORT for clients and agents; port 0: a free one")->capture_default_str();
  app.add_option("--data", options->data_directory, "directory of the store")->default_str("/var/lib/closeknit");
  app.add_option("--topology", options->topology_file, "fabric description to apply at the start, where it differs from the stored one");
  app.add_option("--metrics", *metrics, "HOST:PORT of the Prometheus endpoint, or off")->capture_default_str();
  app.add_option("--port-file", options->port_file, "file that gets the port once calls are answered");
  app.add_option("--log-format", *format, "text or json")
      ->transform(CLI::CheckedTransformer(std::map<std::string, LogFormat>{{"text", LogFormat::kText}, {"json", LogFormat::kJson}}));
  app.add_option("--log-level", *level, "debug, info, warning or error")
      ->transform(CLI::CheckedTransformer(std::map<std::string, LogLevel>{
          {"debug", LogLevel::kDebug}, {"info", LogLevel::kInfo}, {"warning", LogLevel::kWarning}, {"error", LogLevel::kError}}));
  CoreConfig& core = options->core;
  AddDuration(app, "--heartbeat-interval", &core.heartbeat_interval, "how often agents say that they live");
  AddDuration(app, "--agent-timeout", &options->agent_timeout, "silence after which a host counts as down (its ranks run on)");
  AddDuration(app, "--prepare-timeout", &core.prepare_timeout, "for every host of a gang to be prepared; then it is replaced");
  AddDuration(app, "--start-timeout", &core.start_timeout, "for every host of a gang to confirm its start");
  AddDuration(app, "--stop-timeout", &core.stop_timeout, "beyond the grace period, before a job says which host it waits for");
  AddDuration(app, "--host-backoff", &core.host_backoff, "without new work for a host that failed to prepare; doubles each time");
  AddDuration(app, "--restart-backoff", &core.restart_backoff, "between attempts of a gang that fails at once; doubles each time");
}

int Run(int argc, char** argv) {
  DaemonOptions options;
  options.data_directory = "/var/lib/closeknit";
  std::string metrics = "127.0.0.1:7412";
  LogFormat format = LogFormat::kText;
  LogLevel level = LogLevel::kInfo;
  CLI::App app("knitd: Closeknit's scheduler. Keeps the cluster's model, places gangs, talks to agents (knit-agent) and clients (knit).",
               "knitd");
  app.set_version_flag("--version", CLOSEKNIT_VERSION);
  app.footer("Example:\n  knitd --data /var/lib/closeknit --topology cluster.yaml --listen 0.0.0.0:7411");
  AddFlags(app, &options, &metrics, &format, &level);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadFlag;
  }
  if (metrics != "off") options.metrics_address = metrics;
  SetLog(level, format);

  // Before any thread starts, so that all of them leave the signals to sigwait.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(options);
  if (!daemon.ok()) {
    Log(LogLevel::kError, "cannot start", {{"why", std::string(daemon.status().message())}});
    return kCannotRun;
  }
  Log(LogLevel::kInfo, "ready",
      {{"version", CLOSEKNIT_VERSION}, {"port", absl::StrCat((*daemon)->port())}, {"data", options.data_directory}});
  int received = 0;
  sigwait(&signals, &received);
  Log(LogLevel::kInfo, "stopping; ranks run on", {{"signal", strsignal(received)}});
  daemon->reset();
  return 0;
}

}  // namespace
}  // namespace closeknit

int main(int argc, char** argv) { return closeknit::Run(argc, argv); }
