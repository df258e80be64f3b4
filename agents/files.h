// Files that outlive the process which writes them: written whole and durably, locked for as long as their owner lives.
#ifndef CLOSEKNIT_AGENTS_FILES_H_
#define CLOSEKNIT_AGENTS_FILES_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"

namespace closeknit {

// A file descriptor that is closed with its owner.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  ~OwnedFd() { Close(); }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  void Close();

 private:
  int fd_ = -1;
};

// The error of the last system call, "what: strerror", with the code that fits errno.
absl::Status SystemError(absl::string_view what);

// Replaces the file as a whole: after OK it is on disk, and readers see the old bytes or the new ones, never a mixture.
absl::Status WriteDurably(const std::string& path, absl::string_view bytes, int mode = 0600);
absl::Status WriteDurably(const std::string& path, const google::protobuf::MessageLite& message);

// kNotFound if there is none; kDataLoss if it is not a message of this type; kResourceExhausted beyond 64 MiB.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);
absl::Status ReadMessage(const std::string& path, google::protobuf::MessageLite* message);

// Makes the directory and those above it. OK if it is there. The last one gets `mode`, those above it 0755.
absl::Status MakeDirectories(const std::string& path, int mode);

// Makes what was renamed, created or removed in the directory durable.
absl::Status SyncDirectory(const std::string& path);

// Removes a directory with all that is in it. OK if there is none.
absl::Status RemoveTree(const std::string& path);

// An exclusive lock that lasts as long as the object, or the process. The kernel ends it with the process, so that a lock that can be had
// is proof that its owner is dead. kUnavailable: another process has it.
absl::StatusOr<OwnedFd> LockFile(const std::string& path);

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_FILES_H_
