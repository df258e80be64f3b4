// A few threads for work that is too long for gRPC's own: reading fabric descriptions, planning.
#ifndef CLOSEKNIT_SCHEDULER_WORKER_POOL_H_
#define CLOSEKNIT_SCHEDULER_WORKER_POOL_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "proto/base/mutex.h"

namespace closeknit {

class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  ~WorkerPool();  // after all work that was accepted

  static constexpr size_t kMaxWaiting = 256;
  // False: kMaxWaiting pieces of work wait already, or the pool is ending.
  [[nodiscard]] bool Run(std::function<void()> work);

 private:
  void Work();

  Mutex mutex_;  // callers and workers meet here
  CondVar wake_;
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_WORKER_POOL_H_
