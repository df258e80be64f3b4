// A server stream that tells of changes: each changed key once, with its newest version when its turn comes.
//
// A reader that is slower than the changes misses versions in between, never the last, and costs at most one entry a key.
#ifndef CLOSEKNIT_SCHEDULER_WATCH_STREAM_H_
#define CLOSEKNIT_SCHEDULER_WATCH_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "proto/base/mutex.h"
#include "scheduler/grpc_status.h"

namespace closeknit {

// A stream that ends before it begins.
class FailedStream : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  explicit FailedStream(const absl::Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

// Owned by itself until gRPC is done with it; the model holds it weakly.
template <typename Key, typename Watcher>
class WatchStream : public grpc::ServerWriteReactor<grpc::ByteBuffer>, public Watcher {
 public:
  // Called once, right after construction.
  void OwnSelf(std::shared_ptr<WatchStream> self) { self_ = std::move(self); }

  using Argument = std::conditional_t<std::is_integral_v<Key>, Key, const Key&>;
  void Changed(Argument key) override {
    MutexLock lock(&mutex_);
    if (finished_ || !waiting_keys_.insert(key).second) return;
    waiting_.push_back(key);
    Write();
  }

  // Ends the stream once what waits is written.
  void EndWhenWritten() {
    MutexLock lock(&mutex_);
    ending_ = true;
    Write();
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) return FinishWith(grpc::Status::CANCELLED);
    Write();
  }
  void OnCancel() override {
    MutexLock lock(&mutex_);
    FinishWith(grpc::Status::CANCELLED);
  }
  void OnDone() override { self_ = nullptr; }

 protected:
  // The message that tells of `key` now. False: nothing to tell. `last`: the stream ends after it.
  virtual bool Fill(const Key& key, grpc::ByteBuffer* message, bool* last) = 0;

 private:
  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    while (!waiting_.empty() && !ending_after_this_) {
      const Key key = std::move(waiting_.front());
      waiting_.pop_front();
      waiting_keys_.erase(key);
      if (!Fill(key, &message_, &ending_after_this_)) continue;
      writing_ = true;
      this->StartWrite(&message_);
      return;
    }
    if (ending_ || ending_after_this_) FinishWith(grpc::Status::OK);
  }
  void FinishWith(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(finished_, true)) return;
    this->Finish(status);
  }

  Mutex mutex_;  // changes come from the commit loop, completions from gRPC
  std::deque<Key> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Key> waiting_keys_ ABSL_GUARDED_BY(mutex_);
  grpc::ByteBuffer message_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_after_this_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<WatchStream> self_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_WATCH_STREAM_H_
