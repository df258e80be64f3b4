// One connection to each slot's shim: made, lost, made again; and what becomes of a slot whose shim is dead.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agents/files.h"
#include "agents/process_tree.h"
#include "agents/slots.h"
#include "proto/base/log.h"
#include "proto/base/proto_time.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr absl::Duration kConnectRetry = absl::Milliseconds(5);
constexpr absl::Duration kKillRetry = absl::Milliseconds(20);

bool HasEnded(const v1::SlotStatus& status) { return status.state() == v1::SLOT_STATE_ENDED; }

// posix_spawn's attributes and actions with their clean-up.
class SpawnSetup {
 public:
  explicit SpawnSetup(const std::string& log) {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
  }
  ~SpawnSetup() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  const posix_spawnattr_t* attributes() const { return &attributes_; }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

}  // namespace

absl::Status Slots::Adopt() {
  RETURN_IF_ERROR(MakeDirectories(spool_.slots(), 0700));
  RETURN_IF_ERROR(MakeDirectories(spool_.logs(), 0755));
  RETURN_IF_ERROR(released_.Adopt());
  std::error_code error;
  std::vector<v1::SlotId> found;
  for (const auto& entry : std::filesystem::directory_iterator(spool_.slots(), error)) {
    const std::optional<v1::SlotId> id = ParseSlotName(entry.path().filename().string());
    if (id.has_value()) found.push_back(*id);
  }
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("list ", spool_.slots()));
  for (const v1::SlotId& id : found) RETURN_IF_ERROR(AdoptSlot(id));
  return absl::OkStatus();
}

absl::Status Slots::AdoptSlot(const v1::SlotId& id) {
  v1::ShimOrder order;
  const absl::Status read = ReadMessage(spool_.slot(id).order(), &order);
  // No order: the agent that prepared it had not got that far, and no shim was started.
  if (absl::IsNotFound(read)) return RemoveTree(spool_.slot(id).path());
  RETURN_IF_ERROR(read);
  auto slot = std::make_unique<Slot>(spool_.slot(id), order);
  v1::ShimReply reply;
  const absl::Status state = ReadMessage(slot->directory.status(), &reply);
  if (!state.ok() && !absl::IsNotFound(state)) return state;
  if (reply.has_rejected()) return released_.Add(slot->directory);  // the scheduler sees that the slot is not here
  if (state.ok()) slot->status = reply.status();
  Log(LogLevel::kInfo, "adopted", {{"slot", SlotName(id)}, {"state", v1::SlotState_Name(slot->status.state())}});
  const bool live = !HasEnded(slot->status);
  slots_[{id.job_id(), id.attempt()}] = std::move(slot);
  if (live) callbacks_.slot_lives(id, true);
  if (live) Connect(id);
  return absl::OkStatus();
}

absl::Status Slots::Spawn(Slot* slot) {
  const SpawnSetup setup(slot->directory.shim_log());
  std::string program = config_.shim, directory = slot->directory.path();
  char* const argv[] = {program.data(), directory.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program.c_str(), setup.actions(), setup.attributes(), argv, environ);
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("start ", program));
  slot->child = pid;
  return absl::OkStatus();
}

void Slots::ConnectLater(const v1::SlotId& id) {
  Slot& slot = *Find(id);
  loop_->Cancel(slot.timer);
  slot.timer = loop_->After(kConnectRetry, [this, id] { Connect(id); });
}

void Slots::Connect(const v1::SlotId& id) {
  Slot& slot = *Find(id);
  absl::StatusOr<OwnedFd> fd = ConnectTo(slot.directory.path());
  if (!fd.ok()) return ShimIsDead(&slot) ? EndLost(id) : ConnectLater(id);
  slot.socket = std::make_unique<FrameSocket>(
      loop_, *std::move(fd), [this, id](const std::string& frame) { OnReply(id, frame); },
      [this, id](const absl::Status&) {
        Find(id)->socket.reset();
        if (!HasEnded(Find(id)->status)) ConnectLater(id);
      });
  v1::ShimRequest subscribe;
  subscribe.mutable_subscribe()->set_cookie(slot.cookie);
  slot.socket->Send(subscribe);
  for (const v1::ShimRequest& request : std::exchange(slot.waiting, {})) slot.socket->Send(request);
}

void Slots::Tell(const v1::SlotId& id, v1::ShimRequest request) {
  Slot& slot = *Find(id);
  if (slot.socket != nullptr) return slot.socket->Send(request);
  slot.waiting.push_back(std::move(request));
}

// A child that has not ended may not have taken its lock yet; of another agent's child only the lock tells.
bool Slots::ShimIsDead(Slot* slot) {
  if (slot->child != 0) {
    const pid_t ended = waitpid(slot->child, nullptr, WNOHANG);
    if (ended == 0) return false;
    slot->child = 0;
  }
  return !absl::IsUnavailable(LockFile(slot->directory.lock()).status());
}

void Slots::OnReply(const v1::SlotId& id, const std::string& frame) {
  v1::ShimReply reply;
  if (!reply.ParseFromString(frame)) return Log(LogLevel::kError, "a shim's answer cannot be read", {{"slot", SlotName(id)}});
  Update(id, reply);
}

void Slots::Update(const v1::SlotId& id, const v1::ShimReply& reply) {
  Slot& slot = *Find(id);
  if (reply.has_rejected()) {
    const v1::SlotRejected& rejected = reply.rejected();
    Forget(id);
    return Reject(id, {rejected.reason_code(), rejected.message(), rejected.host_fault()});
  }
  if (HasEnded(slot.status)) return;
  const bool changed = reply.status().SerializeAsString() != slot.status.SerializeAsString();
  slot.status = reply.status();
  if (HasEnded(slot.status)) callbacks_.slot_lives(id, false);
  if (changed) Report(slot);
}

void Slots::EndLost(const v1::SlotId& id) {
  Slot& slot = *Find(id);
  v1::ShimReply reply;
  if (ReadMessage(slot.directory.status(), &reply).ok() && (reply.has_rejected() || HasEnded(reply.status()))) return Update(id, reply);
  const absl::StatusOr<std::string> cgroup = ReadWholeFile(slot.directory.cgroup());
  const SlotCgroup group(cgroup.ok() ? *cgroup : "");
  if (KillLeftovers(group, slot.directory.mark()) > 0) {
    slot.timer = loop_->After(kKillRetry, [this, id] { EndLost(id); });
    return;
  }
  group.Remove();
  Log(LogLevel::kError, "knit-shim is dead", {{"slot", SlotName(id)}, {"state", v1::SlotState_Name(slot.status.state())}});
  if (!reply.has_status()) *reply.mutable_status() = slot.status;
  if (reply.status().state() == v1::SLOT_STATE_PREPARING && !fence_->started(id)) {
    Forget(id);
    return Reject(id, {"SUPERVISOR_FAILED", "knit-shim ended before the slot was prepared", true});
  }
  reply.mutable_status()->set_state(v1::SLOT_STATE_ENDED);
  reply.mutable_status()->set_supervisor_lost(true);
  reply.mutable_status()->clear_pids();
  *reply.mutable_status()->mutable_end_time() = ToProtoTime(absl::Now());
  const absl::Status written = WriteDurably(slot.directory.status(), reply);
  if (!written.ok()) Log(LogLevel::kError, "a slot's end is not on disk", {{"slot", SlotName(id)}, {"error", written.ToString()}});
  Update(id, reply);
}

}  // namespace closeknit
