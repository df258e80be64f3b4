// Starting one process of a slot.
#ifndef CLOSEKNIT_AGENTS_RANK_PROCESS_H_
#define CLOSEKNIT_AGENTS_RANK_PROCESS_H_

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "agents/command.h"
#include "agents/files.h"
#include "agents/rank_environment.h"

namespace closeknit {

struct RankProcess {
  pid_t pid = 0;   // also its session and process group
  OwnedFd output;  // read end of its standard output and error; non-blocking
};

// Forks and executes. The process is in a session of its own and in the cgroup that `cgroup_procs` belongs to (if not empty), reads
// /dev/null, has default signal handlers, and is killed by the kernel when the calling thread dies. What keeps the program from being
// executed is written to its output, and it exits 126 or 127 as with a shell.
absl::StatusOr<RankProcess> StartRank(const Command& command, const Environment& env, const std::string& directory,
                                      const std::string& cgroup_procs);

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_RANK_PROCESS_H_
