#include "scheduler/worker_pool.h"

#include <utility>

namespace closeknit {

WorkerPool::WorkerPool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

WorkerPool::~WorkerPool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wake_.SignalAll();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkerPool::Run(std::function<void()> work) {
  MutexLock lock(&mutex_);
  if (stopping_ || waiting_.size() >= kMaxWaiting) return false;
  waiting_.push_back(std::move(work));
  wake_.Signal();
  return true;
}

void WorkerPool::Work() {
  while (true) {
    std::function<void()> work;
    {
      MutexLock lock(&mutex_);
      while (waiting_.empty() && !stopping_) wake_.Wait(&mutex_);
      if (waiting_.empty()) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
  }
}

}  // namespace closeknit
