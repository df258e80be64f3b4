#include "agents/released_slots.h"

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agents/files.h"
#include "closeknit/v1/shim.pb.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr absl::Duration kRetry = absl::Milliseconds(50);
constexpr int kQuickTries = 100;
constexpr absl::Duration kSlowRetry = absl::Seconds(5);

}  // namespace

ReleasedSlots::~ReleasedSlots() {
  for (auto& [path, leaving] : leaving_) loop_->Cancel(leaving.timer);
}

absl::Status ReleasedSlots::Adopt() {
  RETURN_IF_ERROR(MakeDirectories(spool_.released(), 0700));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(spool_.released(), error)) TellToExit(entry.path());
  return error ? absl::ErrnoToStatus(error.value(), absl::StrCat("list ", spool_.released())) : absl::OkStatus();
}

absl::Status ReleasedSlots::Add(const SlotDirectory& directory) {
  const std::string name = directory.path().substr(directory.path().rfind('/') + 1);
  const std::string path = absl::StrCat(spool_.released(), "/", name, ".", absl::ToUnixNanos(absl::Now()), ".", ++last_);
  if (rename(directory.path().c_str(), path.c_str()) != 0) return SystemError(absl::StrCat("rename ", directory.path()));
  RETURN_IF_ERROR(SyncDirectory(spool_.slots()));
  TellToExit(path);
  return absl::OkStatus();
}

void ReleasedSlots::TellToExit(const std::string& path) {
  Leaving& leaving = leaving_[path];
  leaving.timer = 0;
  v1::ShimOrder order;
  absl::StatusOr<OwnedFd> fd = ConnectTo(path);
  if (fd.ok() && ReadMessage(path + "/order", &order).ok()) {
    leaving.socket = std::make_unique<FrameSocket>(
        loop_, *std::move(fd), [](const std::string&) {},
        [this, path](const absl::Status&) {
          leaving_[path].socket.reset();
          Later(path);
        });
    v1::ShimRequest subscribe, release;
    subscribe.mutable_subscribe()->set_cookie(order.cookie());
    *release.mutable_release()->mutable_id() = order.prepare().id();
    leaving.socket->Send(subscribe);
    leaving.socket->Send(release);
    return;
  }
  // Nobody there: the shim has gone if its lock is free.
  if (absl::IsUnavailable(LockFile(SlotDirectory(path).lock()).status())) return Later(path);
  const absl::Status removed = RemoveTree(path);
  if (!removed.ok()) Log(LogLevel::kWarning, "a released slot's files stay", {{"error", removed.ToString()}});
  leaving_.erase(path);
}

void ReleasedSlots::Later(const std::string& path) {
  Leaving& leaving = leaving_[path];
  const absl::Duration pause = ++leaving.tries < kQuickTries ? kRetry : kSlowRetry;
  leaving.timer = loop_->After(pause, [this, path] { TellToExit(path); });
}

}  // namespace closeknit
