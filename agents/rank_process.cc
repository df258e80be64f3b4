#include "agents/rank_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace closeknit {
namespace {

// Everything that the child needs, made before fork.
struct Start {
  const char* path;
  char** argv;
  char** envp;
  const char* directory;
  const char* cgroup_procs;  // nullptr: none
  int output;
  pid_t parent;
};

// Only calls that are safe between fork and exec.
void Say(const char* what, const char* which) {
  const char* const parts[] = {"knit-shim: ", what, " ", which, ": ", strerrordesc_np(errno), "\n"};
  for (const char* part : parts) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, part, strlen(part));
  }
}

void JoinCgroup(const char* procs) {
  const int fd = open(procs, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, "0", 1) != 1) Say("cannot join", procs);
  if (fd >= 0) close(fd);
}

void ResetSignals() {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void Become(const Start& start) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != start.parent) _exit(126);  // the supervisor died before the line above
  setsid();
  ResetSignals();
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(start.output, STDOUT_FILENO);
  dup2(start.output, STDERR_FILENO);
  syscall(SYS_close_range, 3U, ~0U, 0U);
  if (start.cgroup_procs != nullptr) JoinCgroup(start.cgroup_procs);
  umask(022);
  if (chdir(start.directory) != 0) {
    Say("cannot enter", start.directory);
    _exit(126);
  }
  execve(start.path, start.argv, start.envp);
  const int code = errno == ENOENT ? 127 : 126;
  Say("cannot execute", start.path);
  _exit(code);
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

absl::StatusOr<RankProcess> StartRank(const Command& command, const Environment& env, const std::string& directory,
                                      const std::string& cgroup_procs) {
  std::vector<std::string> arguments = command.argv;
  std::vector<std::string> variables;
  for (const auto& [name, value] : env) variables.push_back(absl::StrCat(name, "=", value));
  const std::vector<char*> argv = Pointers(arguments), envp = Pointers(variables);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe");
  RankProcess process;
  process.output = OwnedFd(ends[0]);
  const OwnedFd input(ends[1]);
  const Start start = {.path = command.path.c_str(),
                       .argv = const_cast<char**>(argv.data()),
                       .envp = const_cast<char**>(envp.data()),
                       .directory = directory.empty() ? "/" : directory.c_str(),
                       .cgroup_procs = cgroup_procs.empty() ? nullptr : cgroup_procs.c_str(),
                       .output = input.get(),
                       .parent = getpid()};
  process.pid = fork();
  if (process.pid < 0) return SystemError("fork");
  if (process.pid == 0) Become(start);
  fcntl(process.output.get(), F_SETFL, O_NONBLOCK);  // of the read end alone: each end of a pipe has flags of its own
  return process;
}

}  // namespace closeknit
