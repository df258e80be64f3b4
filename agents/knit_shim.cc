// knit-shim SLOT_DIRECTORY: supervises one slot. knit-agent starts it; people do not.
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <string>

#include "agents/shim.h"
#include "proto/base/log.h"

int main(int argc, char** argv) {
  const std::string argument = argc == 2 ? argv[1] : "--help";
  if (argument == "--version") {
    std::cout << "knit-shim " << CLOSEKNIT_VERSION << "\n";
    return 0;
  }
  if (argument[0] == '-') {
    std::cerr << "usage: knit-shim SLOT_DIRECTORY\n\nSupervises one part of a gang. knit-agent starts it; see docs/agents.md.\n";
    return argument == "--help" && argc == 2 ? 0 : 2;
  }
  syscall(SYS_close_range, 3U, ~0U, 0U);  // nothing of the agent's
  for (const int ignored : {SIGPIPE, SIGHUP, SIGINT, SIGTERM}) signal(ignored, SIG_IGN);
  auto shim = closeknit::Shim::Open(argument);
  if (!shim.ok()) {
    closeknit::Log(closeknit::LogLevel::kError, "cannot supervise", {{"slot", argument}, {"error", shim.status().ToString()}});
    return 1;
  }
  (*shim)->Run();
  return 0;
}
