// The flags of `knit submit` and `knit run`, and the job they describe. One table serves the command line and #SBATCH lines. Pure.
#ifndef CLOSEKNIT_CLIENT_SUBMIT_FLAGS_H_
#define CLOSEKNIT_CLIENT_SUBMIT_FLAGS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "closeknit/v1/types.pb.h"

namespace closeknit {

enum class FlagKind { kValue, kSwitch };

struct SubmitFlag {
  const char* name;   // long, without dashes
  const char* alias;  // another long name, or ""
  char letter;        // or 0
  FlagKind kind;
  const char* value;  // its name in the help, or ""
  const char* help;
};
absl::Span<const SubmitFlag> SubmitFlags();

// What was given: flag name (never the alias) -> value ("" for switches). The last of several wins.
using FlagValues = std::map<std::string, std::string>;

// Sets what `flags` say in `spec`. Errors name the flag: "--time: 'x' is no time; accepted are ...".
absl::Status ApplyFlags(const FlagValues& flags, v1::JobSpec* spec);

// The part of the caller's environment that --export (default ALL) gives the job. "ALL", "NONE", "NAME,NAME=value,..." and "ALL,NAME=value"
// as in sbatch. Left out: names that the agent sets for each rank, the shell's own (PWD, SHLVL, _, ...), KNIT_SCHEDULER, values that are
// not UTF-8; a name asked for by itself that may not be set is an error.
absl::StatusOr<std::map<std::string, std::string>> ExportedEnvironment(absl::string_view export_flag,
                                                                       absl::Span<const std::pair<std::string, std::string>> environment);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLIENT_SUBMIT_FLAGS_H_
