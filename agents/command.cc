#include "agents/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agents/files.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr absl::string_view kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

bool IsProgram(const std::string& path) {
  struct stat there;
  return stat(path.c_str(), &there) == 0 && S_ISREG(there.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::string From(const std::string& directory, absl::string_view path) {
  return absl::StartsWith(path, "/") ? std::string(path) : absl::StrCat(directory, "/", path);
}

absl::StatusOr<std::string> FindProgram(const std::string& name, const std::string& directory, const Environment& env) {
  if (absl::StrContains(name, '/')) {
    const std::string path = From(directory, name);
    if (IsProgram(path)) return path;
    return absl::NotFoundError(absl::StrCat("'", path, "' is not there or not executable"));
  }
  const auto set = env.find("PATH");
  const absl::string_view search = set == env.end() ? kDefaultPath : absl::string_view(set->second);
  for (const absl::string_view entry : absl::StrSplit(search, ':')) {
    const std::string path = From(directory, absl::StrCat(entry.empty() ? "." : entry, "/", name));
    if (IsProgram(path)) return path;
  }
  return absl::NotFoundError(absl::StrCat("no program '", name, "' in PATH=", search));
}

}  // namespace

std::vector<std::string> Shebang(absl::string_view script) {
  if (!absl::StartsWith(script, "#!")) return {};
  const absl::string_view line = absl::StripAsciiWhitespace(script.substr(2, script.find('\n') - 2));
  if (line.empty()) return {};
  const size_t blank = line.find_first_of(" \t");
  std::vector<std::string> words = {std::string(line.substr(0, blank))};
  if (blank != absl::string_view::npos) words.emplace_back(absl::StripAsciiWhitespace(line.substr(blank)));
  return words;
}

absl::StatusOr<Command> ResolveCommand(const v1::JobSpec& spec, const Environment& env, const std::string& script_path) {
  const std::string directory = spec.working_directory().empty() ? "/" : spec.working_directory();
  Command command;
  if (spec.script().empty()) {
    command.argv.assign(spec.command().begin(), spec.command().end());
  } else {
    command.argv = Shebang(spec.script());
    command.argv.push_back(script_path);
  }
  if (command.argv.empty() || command.argv[0].empty()) return absl::NotFoundError("the command is empty");
  ASSIGN_OR_RETURN(command.path, FindProgram(command.argv[0], directory, env));
  return command;
}

}  // namespace closeknit
