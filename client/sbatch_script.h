// sbatch scripts: #SBATCH lines that map become flags, the others are named in warnings. Pure.
#ifndef CLOSEKNIT_CLIENT_SBATCH_SCRIPT_H_
#define CLOSEKNIT_CLIENT_SBATCH_SCRIPT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/submit_flags.h"

namespace closeknit {

struct SbatchScript {
  FlagValues flags;
  std::vector<std::string> warnings;  // "line 4: --mail-type is ignored"
};

// Reads the directives from the first line to the first one that is neither a comment nor empty, as sbatch does. Errors name file and line:
// a directive whose value is missing or contradicts another. Scripts that do not begin with "#!" are an error.
absl::StatusOr<SbatchScript> ReadSbatchScript(absl::string_view contents, absl::string_view file_name);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLIENT_SBATCH_SCRIPT_H_
