#include "agents/shim.h"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/log.h"
#include "proto/base/proto_time.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr size_t kMaxClients = 16;  // agents of one host; there is one, and those that it replaces

absl::StatusOr<OwnedFd> BlockAndWatchChildren() {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  if (sigprocmask(SIG_BLOCK, &children, nullptr) != 0) return SystemError("sigprocmask");
  OwnedFd fd(signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.ok()) return SystemError("signalfd");
  return fd;
}

bool IsOurUser(int socket) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Shim>> Shim::Open(const std::string& path) {
  const SlotDirectory directory(path);
  ASSIGN_OR_RETURN(OwnedFd lock, LockFile(directory.lock()));
  if (access(directory.status().c_str(), F_OK) == 0) {
    return absl::FailedPreconditionError(absl::StrCat(directory.status(), " is there: this slot has run"));
  }
  v1::ShimOrder order;
  RETURN_IF_ERROR(ReadMessage(directory.order(), &order));
  auto shim = std::unique_ptr<Shim>(new Shim(path, std::move(order)));
  shim->lock_ = std::move(lock);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return SystemError("PR_SET_CHILD_SUBREAPER");
  ASSIGN_OR_RETURN(shim->children_, BlockAndWatchChildren());
  ASSIGN_OR_RETURN(shim->listener_, ListenAt(path));
  v1::SlotStatus& status = *shim->reply_.mutable_status();
  *status.mutable_id() = shim->order_.prepare().id();
  status.set_state(v1::SLOT_STATE_PREPARING);
  *status.mutable_gpus() = shim->order_.prepare().gpus();
  return shim;
}

void Shim::Run() {
  PrepareNow();
  loop_.WatchReadable(listener_.get(), [this] { OnConnect(); });
  loop_.WatchReadable(children_.get(), [this] {
    signalfd_siginfo ignored;
    while (read(children_.get(), &ignored, sizeof(ignored)) > 0) continue;
    OnChildren();
  });
  loop_.Run();
}

void Shim::PrepareNow() {
  PrepareResult result = Prepare(order_);
  if (result.refusal.has_value()) {
    *reply_.mutable_rejected() = ToRejected(order_.prepare().id(), *result.refusal);
    Log(LogLevel::kWarning, "not prepared", {{"reason", result.refusal->reason_code}, {"message", result.refusal->message}});
    return Publish();
  }
  prepared_ = std::move(result.slot);
  v1::SlotStatus& status = *reply_.mutable_status();
  status.set_state(v1::SLOT_STATE_PREPARED);
  if (prepared_.master.has_value()) status.set_master_port(prepared_.master->port);
  Publish();
}

void Shim::Publish() {
  const absl::Status written = WriteDurably(directory_.status(), reply_);
  // A disk that has failed must not keep the verdict from the scheduler.
  if (!written.ok()) Log(LogLevel::kError, "the slot's state is not on disk", {{"error", written.ToString()}});
  for (Client& client : clients_) {
    if (client.subscribed) client.socket->Send(reply_);
  }
}

void Shim::OnConnect() {
  OwnedFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.ok() || clients_.size() >= kMaxClients || !IsOurUser(fd.get())) return;
  const auto client = clients_.emplace(clients_.end());
  client->socket = std::make_unique<FrameSocket>(
      &loop_, std::move(fd), [this, client](const std::string& frame) { OnRequest(client, frame); },
      [this, client](const absl::Status&) { clients_.erase(client); });
}

void Shim::OnRequest(std::list<Client>::iterator client, const std::string& frame) {
  v1::ShimRequest request;
  const bool parsed = request.ParseFromString(frame);
  if (parsed && request.has_subscribe() && request.subscribe().cookie() == order_.cookie()) {
    client->subscribed = true;
    return client->socket->Send(reply_);
  }
  if (!parsed || !client->subscribed) {
    Log(LogLevel::kWarning, "a stranger on the socket is cut off");
    clients_.erase(client);
    return;
  }
  switch (request.payload_case()) {
    case v1::ShimRequest::kStart:
      return Start(request.start());
    case v1::ShimRequest::kStop:
      return OnStop(request.stop());
    case v1::ShimRequest::kRelease:
      if (state() != v1::SLOT_STATE_STARTED) return loop_.Stop();
      Log(LogLevel::kError, "told to release a slot that has not ended");
      return;
    default:
      return;
  }
}

void Shim::OnStop(const v1::StopSlot& stop) {
  if (state() == v1::SLOT_STATE_ENDED || reply_.has_rejected()) return Publish();
  Log(LogLevel::kInfo, "told to stop", {{"reason", stop.reason()}});
  if (state() == v1::SLOT_STATE_PREPARED) return End();
  StopRanks(FromProtoDuration(stop.grace_period()));
}

}  // namespace closeknit
