// What a slot's processes execute.
#ifndef CLOSEKNIT_AGENTS_COMMAND_H_
#define CLOSEKNIT_AGENTS_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/rank_environment.h"
#include "closeknit/v1/types.pb.h"

namespace closeknit {

struct Command {
  std::string path;               // of the program
  std::vector<std::string> argv;  // argv[0] as the user gave it
};

// The spec's command, argv[0] looked up in the environment's PATH, relative paths from the working directory; or the interpreter of the
// spec's script, which the caller has put at `script_path`. (The interpreter is executed, not the script: a spool may be mounted noexec.)
// kNotFound: no such program, or it is not executable; the message names where it was looked for.
absl::StatusOr<Command> ResolveCommand(const v1::JobSpec& spec, const Environment& env, const std::string& script_path);

// "#!/bin/sh -e\n..." -> {"/bin/sh", "-e"}; as the kernel does it: one argument at most. Empty if it is no such line.
std::vector<std::string> Shebang(absl::string_view script);

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_COMMAND_H_
