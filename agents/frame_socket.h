// Messages over a Unix socket: 4 bytes little-endian length, then the message. Non-blocking, one thread.
#ifndef CLOSEKNIT_AGENTS_FRAME_SOCKET_H_
#define CLOSEKNIT_AGENTS_FRAME_SOCKET_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/event_loop.h"
#include "agents/files.h"
#include "google/protobuf/message_lite.h"

namespace closeknit {

// A frame, or what waits to be sent, may have at most this many bytes.
inline constexpr size_t kMaxFrameBytes = 16 << 20;

class FrameSocket {
 public:
  // `on_frame` is called for each whole frame, `on_closed` once, with the reason; then the socket is closed. Either may destroy it.
  FrameSocket(EventLoop* loop, OwnedFd fd, std::function<void(const std::string&)> on_frame, std::function<void(absl::Status)> on_closed);
  ~FrameSocket();
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;

  // Sends now or when the peer reads again. A peer that lets more than kMaxFrameBytes wait is closed.
  void Send(const google::protobuf::MessageLite& message);

 private:
  void OnReadable();
  void Flush();
  void Close(const absl::Status& why);

  EventLoop* const loop_;
  OwnedFd fd_;
  std::function<void(const std::string&)> on_frame_;
  std::function<void(absl::Status)> on_closed_;
  std::string in_, out_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // false once destroyed: handlers may do that
};

// Sockets at DIRECTORY/socket. They are bound and reached through /proc/self/fd, as paths of sockets are limited to 107 bytes and spool
// paths are not. ConnectSocket: kNotFound or kUnavailable when nobody listens.
absl::StatusOr<OwnedFd> ListenAt(const std::string& directory);
absl::StatusOr<OwnedFd> ConnectTo(const std::string& directory);

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_FRAME_SOCKET_H_
