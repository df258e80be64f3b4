#include "cluster_model/store/directory_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace closeknit {
namespace {

absl::Status MakeDirectory(const std::string& directory) {
  std::error_code error;
  if (!std::filesystem::create_directories(directory, error)) {
    if (!error && std::filesystem::is_directory(directory, error)) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("cannot make directory ", directory, ": ", error ? error.message() : "there is a file of that name"));
  }
  std::filesystem::permissions(directory, std::filesystem::perms::owner_all, error);
  if (error) return absl::FailedPreconditionError(absl::StrCat("cannot set the mode of ", directory, ": ", error.message()));
  return absl::OkStatus();
}

std::string Holder(int fd) {
  char text[32];
  const ssize_t size = pread(fd, text, sizeof(text), 0);
  const absl::string_view pid = absl::StripAsciiWhitespace(absl::string_view(text, size > 0 ? size : 0));
  return pid.empty() ? "another process" : absl::StrCat("process ", pid);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DirectoryLock>> DirectoryLock::Take(const std::string& directory) {
  if (const absl::Status made = MakeDirectory(directory); !made.ok()) return made;
  const std::string path = absl::StrCat(directory, "/closeknit.lock");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return absl::FailedPreconditionError(absl::StrCat("cannot open ", path, ": ", strerror(errno)));
  std::unique_ptr<DirectoryLock> lock(new DirectoryLock(fd));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return absl::FailedPreconditionError(absl::StrCat("cannot lock ", path, ": ", strerror(errno)));
    return absl::FailedPreconditionError(
        absl::StrCat("the store in ", directory, " is open in ", Holder(fd), "; stop that first, or give another directory"));
  }
  // Whose lock it is, for people; the lock itself does not depend on it.
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", strerror(errno)));
  }
  return lock;
}

DirectoryLock::~DirectoryLock() { close(fd_); }

}  // namespace closeknit
