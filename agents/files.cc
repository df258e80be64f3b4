#include "agents/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr size_t kMaxFileBytes = 64 << 20;

absl::Status WriteAll(int fd, absl::string_view bytes, absl::string_view path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(absl::StrCat("write ", path));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash == 0 ? 1 : slash);
}

}  // namespace

OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void OwnedFd::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

absl::Status SystemError(absl::string_view what) { return absl::ErrnoToStatus(errno, what); }

absl::Status WriteDurably(const std::string& path, absl::string_view bytes, int mode) {
  const std::string temporary = absl::StrCat(path, ".new");
  const OwnedFd file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!file.ok()) return SystemError(absl::StrCat("open ", temporary));
  RETURN_IF_ERROR(WriteAll(file.get(), bytes, temporary));
  if (fsync(file.get()) != 0) return SystemError(absl::StrCat("fsync ", temporary));
  if (rename(temporary.c_str(), path.c_str()) != 0) return SystemError(absl::StrCat("rename to ", path));
  return SyncDirectory(DirectoryOf(path));
}

absl::Status WriteDurably(const std::string& path, const google::protobuf::MessageLite& message) {
  return WriteDurably(path, message.SerializeAsString());
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  const OwnedFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.ok()) return SystemError(absl::StrCat("open ", path));
  std::string bytes;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = read(file.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(absl::StrCat("read ", path));
    if (got == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(got));
    if (bytes.size() > kMaxFileBytes) return absl::ResourceExhaustedError(absl::StrCat(path, ": more than ", kMaxFileBytes, " bytes"));
  }
}

absl::Status ReadMessage(const std::string& path, google::protobuf::MessageLite* message) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path));
  if (!message->ParseFromString(bytes)) return absl::DataLossError(absl::StrCat(path, ": not a ", message->GetTypeName()));
  return absl::OkStatus();
}

absl::Status MakeDirectories(const std::string& path, int mode) {
  if (mkdir(path.c_str(), static_cast<mode_t>(mode)) == 0) return SyncDirectory(DirectoryOf(path));
  if (errno == EEXIST) {
    struct stat there;
    if (stat(path.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a directory"));
  }
  const std::string parent = DirectoryOf(path);
  if (errno != ENOENT || parent == path) return SystemError(absl::StrCat("mkdir ", path));
  RETURN_IF_ERROR(MakeDirectories(parent, 0755));
  if (mkdir(path.c_str(), static_cast<mode_t>(mode)) != 0 && errno != EEXIST) return SystemError(absl::StrCat("mkdir ", path));
  return SyncDirectory(parent);
}

absl::Status SyncDirectory(const std::string& path) {
  const OwnedFd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.ok()) return SystemError(absl::StrCat("open ", path));
  // EINVAL: a file system without directory syncs.
  if (fsync(directory.get()) != 0 && errno != EINVAL) return SystemError(absl::StrCat("fsync ", path));
  return absl::OkStatus();
}

absl::Status RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? absl::ErrnoToStatus(error.value(), absl::StrCat("remove ", path)) : absl::OkStatus();
}

absl::StatusOr<OwnedFd> LockFile(const std::string& path) {
  OwnedFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.ok()) return SystemError(absl::StrCat("open ", path));
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) return absl::UnavailableError(absl::StrCat(path, " is locked by another process"));
  return SystemError(absl::StrCat("flock ", path));
}

}  // namespace closeknit
