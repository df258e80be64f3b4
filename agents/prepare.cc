#include "agents/prepare.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "agents/files.h"
#include "agents/rank_environment.h"

namespace closeknit {
namespace {

constexpr absl::Duration kReachPatience = absl::Seconds(1);

std::optional<Refusal> CheckDirectory(const v1::JobSpec& spec) {
  const std::string directory = spec.working_directory().empty() ? "/" : spec.working_directory();
  struct stat there;
  const bool found = stat(directory.c_str(), &there) == 0;
  // What is not there may be missing on every host, by the job's fault: the scheduler finds out from the other hosts. A directory that is
  // there and cannot be entered (a mount that hangs, a disk that fails) is this host's.
  if (!found && (errno == ENOENT || errno == ENOTDIR)) {
    return Refusal{"NO_WORKING_DIRECTORY", absl::StrCat("working directory ", directory, " does not exist"), false};
  }
  if (!found) return Refusal{"NO_WORKING_DIRECTORY", absl::StrCat("working directory ", directory, ": ", strerror(errno)), true};
  if (!S_ISDIR(there.st_mode)) {
    return Refusal{"NO_WORKING_DIRECTORY", absl::StrCat("working directory ", directory, " is not a directory"), false};
  }
  if (access(directory.c_str(), X_OK) != 0) {
    return Refusal{"NO_WORKING_DIRECTORY", absl::StrCat("working directory ", directory, " cannot be entered: ", strerror(errno)), true};
  }
  return std::nullopt;
}

std::optional<Refusal> FindCommand(const v1::ShimOrder& order, Command* command) {
  const std::string script = absl::StrCat(order.spool_directory(), "/script");
  const v1::JobSpec& spec = order.prepare().spec();
  if (!spec.script().empty()) {
    const absl::Status written = WriteDurably(script, spec.script(), 0700);
    if (!written.ok()) return Refusal{"SPOOL_UNWRITABLE", std::string(written.message()), true};
  }
  absl::StatusOr<Command> found = ResolveCommand(spec, JobEnvironment(order), script);
  if (!found.ok()) return Refusal{"NO_COMMAND", std::string(found.status().message()), false};
  *command = *std::move(found);
  return std::nullopt;
}

std::optional<Refusal> OpenLogs(const v1::ShimOrder& order, std::vector<RankLog>* logs) {
  RankLogLimits limits;
  if (order.log_max_bytes() > 0) limits.max_bytes = order.log_max_bytes();
  limits.max_files = order.log_max_files();
  absl::Status status = MakeDirectories(order.log_directory(), 0755);
  const v1::PrepareSlot& prepare = order.prepare();
  for (uint32_t i = 0; status.ok() && i < ProcessesOf(prepare); ++i) {
    absl::StatusOr<RankLog> log = RankLog::Create(order.log_directory(), prepare.slot() * prepare.ranks_per_node() + i, limits);
    status = log.status();
    if (log.ok()) logs->push_back(*std::move(log));
  }
  if (status.ok()) return std::nullopt;
  return Refusal{"SPOOL_UNWRITABLE", std::string(status.message()), true};
}

std::optional<Refusal> CheckMaster(const v1::PrepareSlot& prepare, std::optional<HeldPort>* master) {
  if (prepare.slot() != 0) {
    const absl::Status reachable = CheckMasterReachable(prepare.master_address(), kReachPatience);
    if (!reachable.ok()) return Refusal{"MASTER_UNREACHABLE", std::string(reachable.message()), true};
    return std::nullopt;
  }
  const absl::Status here = CheckMasterIsHere(prepare.master_address(), prepare.slots());
  if (!here.ok()) return Refusal{"MASTER_UNREACHABLE", std::string(here.message()), true};
  absl::StatusOr<HeldPort> held = HoldPort();
  if (!held.ok()) return Refusal{"MASTER_UNREACHABLE", std::string(held.status().message()), true};
  *master = *std::move(held);
  return std::nullopt;
}

}  // namespace

PrepareResult Prepare(const v1::ShimOrder& order) {
  PrepareResult result;
  result.refusal = CheckDirectory(order.prepare().spec());
  if (!result.refusal.has_value()) result.refusal = FindCommand(order, &result.slot.command);
  if (!result.refusal.has_value()) result.refusal = CheckMaster(order.prepare(), &result.slot.master);
  if (!result.refusal.has_value()) result.refusal = OpenLogs(order, &result.slot.logs);
  return result;
}

v1::SlotRejected ToRejected(const v1::SlotId& id, const Refusal& refusal) {
  v1::SlotRejected rejected;
  *rejected.mutable_id() = id;
  rejected.set_reason_code(refusal.reason_code);
  rejected.set_message(refusal.message);
  rejected.set_host_fault(refusal.host_fault);
  return rejected;
}

}  // namespace closeknit
