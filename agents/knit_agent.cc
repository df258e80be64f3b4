// knit-agent: Closeknit's part on each host. It connects out to the scheduler, starts and stops ranks through knit-shim, reports.
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agents/agent.h"
#include "agents/nvml.h"
#include "proto/base/log.h"

extern char** environ;

namespace closeknit {
namespace {

// Exit codes: 0 stopped by SIGTERM or SIGINT (ranks run on); 1 cannot run (message); 2 bad flag.
constexpr int kCannotRun = 1, kBadFlag = 2;

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

std::string ShimBesideThis() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / "knit-shim").string();
}

// What a rank inherits from the host: how programs are found and speak, and how this site's network is to be used. Nothing else: a
// variable that somebody left in a shell from which the agent was started must not change jobs.
Environment HostEnvironment() {
  Environment env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == absl::string_view::npos) continue;
    const absl::string_view name = text.substr(0, equals);
    bool wanted = false;
    for (const absl::string_view known : {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH"}) {
      wanted = wanted || name == known;
    }
    for (const absl::string_view prefix : {"LC_", "NCCL_", "UCX_", "GLOO_", "TORCH_", "CUDA_", "NVSHMEM_", "MELLANOX_"}) {
      wanted = wanted || absl::StartsWith(name, prefix);
    }
    if (wanted && name != "CUDA_VISIBLE_DEVICES") env[std::string(name)] = std::string(text.substr(equals + 1));
  }
  return env;
}

void AddFlags(CLI::App& app, AgentOptions* options, LogFormat* format, LogLevel* level) {
  app.add_option("--scheduler", options->scheduler, "HOST:PORT of knitd")->envname("KNIT_SCHEDULER")->capture_default_str();
  app.add_option("--node", options->slots.node, "this host's name in the fabric description")->capture_default_str();
  app.add_option("--address", options->address, "where ranks of other hosts reach this one: an IP address or a name they can resolve")
      ->default_str("the node's name");
  app.add_option("--spool", options->spool, "directory for slots and logs, on a local disk")->capture_default_str();
  app.add_option("--gpus", options->simulated_gpus, "so many simulated GPUs, for hosts without any")
      ->default_str("what NVML reports")
      ->check(CLI::Range(0, 64));
  app.add_option("--nvml", options->nvml, "NVIDIA's management library")->capture_default_str();
  app.add_option("--shim", options->slots.shim, "the program knit-shim")->default_str("beside knit-agent");
  app.add_option("--log-max-bytes", options->slots.log_max_bytes, "of a rank's log file, before it is rotated")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{4096}, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--log-max-files", options->slots.log_max_files, "of a rank, the current one included")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  app.add_flag("--slurm-names,!--no-slurm-names", options->slots.slurm_names, "give ranks SLURM_* variables, too")->capture_default_str();
  app.add_flag("--openmpi-names,!--no-openmpi-names", options->slots.openmpi_names, "give ranks OMPI_COMM_WORLD_* variables, too");
  app.add_option("--log-format", *format, "text or json")
      ->transform(CLI::CheckedTransformer(std::map<std::string, LogFormat>{{"text", LogFormat::kText}, {"json", LogFormat::kJson}}));
  app.add_option("--log-level", *level, "debug, info, warning or error")
      ->transform(CLI::CheckedTransformer(std::map<std::string, LogLevel>{
          {"debug", LogLevel::kDebug}, {"info", LogLevel::kInfo}, {"warning", LogLevel::kWarning}, {"error", LogLevel::kError}}));
}

// A signal wakes the loop like everything else does.
OwnedFd StopOnSignals(Agent* agent) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  OwnedFd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (fd.ok()) {
    agent->loop().WatchReadable(fd.get(), [agent] {
      Log(LogLevel::kInfo, "stopping; ranks run on", {});
      agent->loop().Stop();
    });
  }
  return fd;
}

int Run(int argc, char** argv) {
  AgentOptions options;
  options.scheduler = "127.0.0.1:7411";
  options.slots.node = HostName();
  options.spool = "/var/spool/closeknit";
  options.nvml = kNvmlLibrary;
  options.slots.shim = ShimBesideThis();
  options.slots.base_environment = HostEnvironment();
  LogFormat format = LogFormat::kText;
  LogLevel level = LogLevel::kInfo;
  CLI::App app("knit-agent: Closeknit's part on a host. Connects to the scheduler (knitd), starts ranks, reports.", "knit-agent");
  app.set_version_flag("--version", CLOSEKNIT_VERSION);
  app.footer("Example:\n  knit-agent --scheduler knitd.cluster:7411 --node r012n3 --address 10.0.12.3");
  AddFlags(app, &options, &format, &level);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadFlag;
  }
  SetLog(level, format);
  if (options.address.empty()) options.address = options.slots.node;
  if (access(options.slots.shim.c_str(), X_OK) != 0) {
    Log(LogLevel::kError, "cannot start", {{"why", absl::StrCat("--shim: ", options.slots.shim, " is not an executable program")}});
    return kCannotRun;
  }

  // Before any thread starts, so that all of them leave the signals to the loop.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  absl::StatusOr<std::unique_ptr<Agent>> agent = Agent::Open(options);
  if (!agent.ok()) {
    Log(LogLevel::kError, "cannot start", {{"why", std::string(agent.status().message())}});
    return kCannotRun;
  }
  const OwnedFd stop = StopOnSignals(agent->get());
  if (!stop.ok()) {
    Log(LogLevel::kError, "cannot start", {{"why", SystemError("signalfd").ToString()}});
    return kCannotRun;
  }
  Log(LogLevel::kInfo, "ready", {{"version", CLOSEKNIT_VERSION}, {"node", options.slots.node}, {"spool", options.spool}});
  (*agent)->Run();
  _exit(0);  // without waiting for threads that may hang in a driver; all that must last is on disk
}

}  // namespace
}  // namespace closeknit

int main(int argc, char** argv) { return closeknit::Run(argc, argv); }
