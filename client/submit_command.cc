#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/commands.h"
#include "client/job_file.h"
#include "client/sbatch_script.h"
#include "proto/base/status_macros.h"

extern char** environ;

namespace closeknit {
namespace {

constexpr size_t kMaxScriptBytes = 1 << 20;  // the API's limit

std::string NewRequestId() {
  std::random_device random;
  return absl::StrFormat("%08x%08x%08x%08x", random(), random(), random(), random());
}

std::vector<std::pair<std::string, std::string>> Environment() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

// What the first word of the command is.
enum class WordKind { kProgram, kScript, kJobFile };

// A script is a readable file that begins with "#!" and is not executable or has #SBATCH lines; so `knit submit train.sh` works as
// sbatch's users expect, and `knit submit ./tool` runs a program that is on every host.
absl::StatusOr<WordKind> KindOf(const std::string& word, std::string* contents) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(word, error)) return WordKind::kProgram;
  if (absl::EndsWith(word, ".yaml") || absl::EndsWith(word, ".yml")) {
    ASSIGN_OR_RETURN(*contents, ReadWholeFile(word, kMaxScriptBytes));
    return WordKind::kJobFile;
  }
  const std::filesystem::perms permissions = std::filesystem::status(word, error).permissions();
  const bool executable = (permissions & std::filesystem::perms::owner_exec) != std::filesystem::perms::none;
  if (std::filesystem::file_size(word, error) > kMaxScriptBytes) return WordKind::kProgram;
  ASSIGN_OR_RETURN(*contents, ReadWholeFile(word, kMaxScriptBytes));
  if (!absl::StartsWith(*contents, "#!")) return WordKind::kProgram;
  return !executable || absl::StrContains(*contents, "\n#SBATCH") ? WordKind::kScript : WordKind::kProgram;
}

// Fills command or script, and returns the flags that the file itself sets.
absl::StatusOr<FlagValues> ReadCommand(const SubmitOptions& options, v1::JobSpec* spec, std::vector<std::string>* warnings) {
  if (!options.wrap.empty()) {
    if (!options.command.empty()) return absl::InvalidArgumentError("--wrap and a command: give one of them");
    for (const char* word : {"/bin/sh", "-c"}) spec->add_command(word);
    spec->add_command(options.wrap);
    return FlagValues();
  }
  if (options.command.empty())
    return absl::InvalidArgumentError("no command; e.g. knit submit -N 2 -- python3 train.py, or a script or YAML file");
  std::string contents;
  ASSIGN_OR_RETURN(const WordKind kind, KindOf(options.command[0], &contents));
  if (kind == WordKind::kProgram) {
    spec->mutable_command()->Assign(options.command.begin(), options.command.end());
    return FlagValues();
  }
  if (options.command.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.command[0], ": arguments after a script or job file are not passed on; use --wrap, or -- with a program"));
  }
  if (kind == WordKind::kJobFile) {
    ASSIGN_OR_RETURN(*spec, ReadJobFile(contents, options.command[0]));
    return FlagValues();
  }
  ASSIGN_OR_RETURN(SbatchScript script, ReadSbatchScript(contents, options.command[0]));
  warnings->insert(warnings->end(), script.warnings.begin(), script.warnings.end());
  spec->set_script(contents);
  script.flags.emplace("job-name", std::filesystem::path(options.command[0]).filename().string());
  return script.flags;
}

}  // namespace

absl::StatusOr<v1::SubmitJobRequest> BuildSubmitRequest(const SubmitOptions& options, std::vector<std::string>* warnings) {
  v1::SubmitJobRequest request;
  v1::JobSpec& spec = *request.mutable_spec();
  ASSIGN_OR_RETURN(FlagValues flags, ReadCommand(options, &spec, warnings));
  for (const auto& [name, value] : options.flags) flags[name] = value;  // the command line wins
  RETURN_IF_ERROR(ApplyFlags(flags, &spec));
  if (spec.nodes() == 0 && flags.count("nodes") == 0) spec.set_nodes(1);
  if (spec.working_directory().empty()) {
    std::error_code error;
    spec.set_working_directory(std::filesystem::current_path(error).string());
  } else if (spec.working_directory()[0] != '/') {
    std::error_code error;
    spec.set_working_directory(std::filesystem::absolute(spec.working_directory(), error).lexically_normal().string());
  }
  const auto export_flag = flags.find("export");
  const std::vector<std::pair<std::string, std::string>> environment = Environment();
  ASSIGN_OR_RETURN(const auto exported, ExportedEnvironment(export_flag == flags.end() ? "ALL" : export_flag->second, environment));
  for (const auto& [name, value] : exported) spec.mutable_environment()->insert({name, value});  // a job file's own values win
  request.set_request_id(options.request_id.empty() ? NewRequestId() : options.request_id);
  request.set_user(options.user.empty() ? CallerName() : options.user);
  return request;
}

int Submit(Session& session, const SubmitOptions& options) {
  const Output& output = session.output;
  std::vector<std::string> warnings;
  const auto request = BuildSubmitRequest(options, &warnings);
  for (const std::string& warning : warnings) *output.err << "knit: warning: " << warning << "\n";
  if (!request.ok()) return Fail(output, request.status());
  const auto response = session.connection->Call(session.connection->jobs(), &v1::JobService::Stub::SubmitJob, *request);
  if (!response.ok()) return Fail(output, response.status());
  if (output.structured()) {
    PrintMessage(output, *response);
  } else if (options.parsable) {
    *output.out << response->job_id() << "\n";
  } else if (response->tasks() > 1) {
    *output.out << "Submitted job " << response->job_id() << " (array of " << response->tasks() << " tasks)\n";
  } else {
    *output.out << "Submitted job " << response->job_id() << "\n";
  }
  return kOk;
}

}  // namespace closeknit
