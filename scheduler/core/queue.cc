#include "scheduler/core/queue.h"

#include "proto/base/check.h"

namespace closeknit {

void JobQueue::Add(const QueueKey& key, Shape* shape) {
  const bool first = shape->ready.empty() || key < *shape->ready.begin();
  if (first) {
    if (!shape->ready.empty()) FrontsOf(*shape).erase(*shape->ready.begin());
    FrontsOf(*shape).emplace(key, shape);
  }
  CHECK(shape->ready.insert(key).second) << "job " << key.job << " is queued twice";
  order_.insert(key);
}

void JobQueue::Remove(const QueueKey& key, Shape* shape) {
  const bool first = !shape->ready.empty() && key == *shape->ready.begin();
  CHECK(shape->ready.erase(key) == 1) << "job " << key.job << " is not queued";
  order_.erase(key);
  if (!first) return;
  FrontsOf(*shape).erase(key);
  if (shape->ready.empty()) {
    shape->stalled = false;
  } else {
    FrontsOf(*shape).emplace(*shape->ready.begin(), shape);
  }
}

std::optional<JobQueue::Front> JobQueue::front() const {
  if (fronts_.empty()) return std::nullopt;
  return Front{fronts_.begin()->first, fronts_.begin()->second};
}

void JobQueue::Stall(Shape* shape) {
  CHECK(!shape->stalled && !shape->ready.empty()) << "only a shape with a front can stall";
  const QueueKey front = *shape->ready.begin();
  fronts_.erase(front);
  shape->stalled = true;
  stalled_.emplace(front, shape);
}

void JobQueue::Wake() {
  for (const auto& [key, shape] : stalled_) {
    shape->stalled = false;
    fronts_.emplace(key, shape);
  }
  stalled_.clear();
}

}  // namespace closeknit
