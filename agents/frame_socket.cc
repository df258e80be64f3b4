#include "agents/frame_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

uint32_t LengthAt(const std::string& bytes, size_t at) {
  uint32_t length = 0;
  for (int i = 3; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(bytes[at + i]);
  return length;
}

struct Address {
  OwnedFd directory;  // must live until bind or connect
  sockaddr_un name = {};
};

absl::StatusOr<Address> AddressOf(const std::string& directory) {
  Address address;
  address.directory = OwnedFd(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!address.directory.ok()) return SystemError(absl::StrCat("open ", directory));
  address.name.sun_family = AF_UNIX;
  const std::string path = absl::StrCat("/proc/self/fd/", address.directory.get(), "/socket");
  memcpy(address.name.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace

FrameSocket::FrameSocket(EventLoop* loop, OwnedFd fd, std::function<void(const std::string&)> on_frame,
                         std::function<void(absl::Status)> on_closed)
    : loop_(loop), fd_(std::move(fd)), on_frame_(std::move(on_frame)), on_closed_(std::move(on_closed)) {
  loop_->WatchReadable(fd_.get(), [this] { OnReadable(); });
}

FrameSocket::~FrameSocket() {
  *alive_ = false;
  if (fd_.ok()) loop_->Ignore(fd_.get());
}

void FrameSocket::Send(const google::protobuf::MessageLite& message) {
  if (!fd_.ok()) return;
  const std::string bytes = message.SerializeAsString();
  for (int shift = 0; shift < 32; shift += 8) out_ += static_cast<char>(bytes.size() >> shift);
  out_ += bytes;
  Flush();
}

void FrameSocket::Flush() {
  while (!out_.empty()) {
    const ssize_t sent = send(fd_.get(), out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) break;
    out_.erase(0, static_cast<size_t>(sent));
  }
  if (out_.empty()) return loop_->IgnoreWritable(fd_.get());
  // The reading side sees what is wrong with a broken socket; a peer that does not read is cut off there, too.
  if (out_.size() > kMaxFrameBytes + 4) shutdown(fd_.get(), SHUT_RDWR);
  loop_->WatchWritable(fd_.get(), [this] { Flush(); });
}

void FrameSocket::OnReadable() {
  char buffer[1 << 16];
  const ssize_t got = recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got < 0) return Close(SystemError("recv"));
  if (got == 0) return Close(absl::UnavailableError("the peer has closed the socket"));
  in_.append(buffer, static_cast<size_t>(got));
  const std::shared_ptr<bool> alive = alive_;
  const std::function<void(const std::string&)> on_frame = on_frame_;  // may destroy this
  while (in_.size() >= 4) {
    const uint32_t length = LengthAt(in_, 0);
    if (length > kMaxFrameBytes) return Close(absl::DataLossError(absl::StrCat("a frame of ", length, " bytes")));
    if (in_.size() < 4 + size_t{length}) return;
    const std::string frame = in_.substr(4, length);
    in_.erase(0, 4 + size_t{length});
    on_frame(frame);
    if (!*alive || !fd_.ok()) return;
  }
}

void FrameSocket::Close(const absl::Status& why) {
  loop_->Ignore(fd_.get());
  fd_.Close();
  const std::function<void(absl::Status)> on_closed = on_closed_;  // may destroy this
  on_closed(why);
}

absl::StatusOr<OwnedFd> ListenAt(const std::string& directory) {
  ASSIGN_OR_RETURN(const Address address, AddressOf(directory));
  unlink(address.name.sun_path);
  OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.ok()) return SystemError("socket");
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.name), sizeof(address.name)) != 0) {
    return SystemError(absl::StrCat("bind ", directory, "/socket"));
  }
  if (listen(fd.get(), 16) != 0) return SystemError(absl::StrCat("listen ", directory, "/socket"));
  return fd;
}

absl::StatusOr<OwnedFd> ConnectTo(const std::string& directory) {
  ASSIGN_OR_RETURN(const Address address, AddressOf(directory));
  OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.ok()) return SystemError("socket");
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.name), sizeof(address.name)) != 0) {
    return SystemError(absl::StrCat("connect ", directory, "/socket"));
  }
  return fd;
}

}  // namespace closeknit
