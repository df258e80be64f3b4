// One process a store: an advisory lock on a file in its directory.
#ifndef CLOSEKNIT_CLUSTER_MODEL_STORE_DIRECTORY_LOCK_H_
#define CLOSEKNIT_CLUSTER_MODEL_STORE_DIRECTORY_LOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace closeknit {

// Held while it lives; given up by the kernel when the process dies, however it dies.
class DirectoryLock {
 public:
  // Makes the directory if it is missing, with mode 0700. kFailedPrecondition names the process that holds the lock.
  static absl::StatusOr<std::unique_ptr<DirectoryLock>> Take(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_STORE_DIRECTORY_LOCK_H_
