#include "scheduler/core/queue.h"

#include "gtest/gtest.h"

namespace closeknit {
namespace {

// Higher priority first, then submission.
QueueKey Key(int priority, JobId job) { return {-priority, job, job}; }

TEST(JobQueue, TheFrontIsOfHighestPriorityThenOldest) {
  JobQueue queue;
  Shape small, large;
  queue.Add(Key(0, 1), &small);
  queue.Add(Key(0, 2), &large);
  queue.Add(Key(5, 3), &large);
  EXPECT_EQ(queue.front()->key.job, 3u);
  queue.Remove(Key(5, 3), &large);
  EXPECT_EQ(queue.front()->key.job, 1u);
  queue.Remove(Key(0, 1), &small);
  EXPECT_EQ(queue.front()->key.job, 2u);
  queue.Remove(Key(0, 2), &large);
  EXPECT_FALSE(queue.front().has_value());
}

TEST(JobQueue, AStalledShapeKeepsItsPlacesButBlocksNobody) {
  JobQueue queue;
  Shape small, large;
  queue.Add(Key(0, 1), &large);
  queue.Add(Key(0, 2), &small);
  queue.Add(Key(0, 3), &large);
  queue.Stall(&large);
  EXPECT_EQ(queue.front()->key.job, 2u);
  EXPECT_EQ(queue.Ahead(Key(0, 3)), 2);
  queue.Add(Key(9, 4), &large);  // also stalled
  EXPECT_EQ(queue.front()->key.job, 2u);
  queue.Remove(Key(0, 1), &large);
  queue.Wake();
  EXPECT_EQ(queue.front()->key.job, 4u);
  EXPECT_EQ(queue.size(), 3);
}

TEST(JobQueue, AShapeThatWasEmptiedIsNoLongerStalled) {
  JobQueue queue;
  Shape shape;
  queue.Add(Key(0, 1), &shape);
  queue.Stall(&shape);
  queue.Remove(Key(0, 1), &shape);
  queue.Add(Key(0, 2), &shape);
  EXPECT_EQ(queue.front()->key.job, 2u);
}

TEST(JobQueue, CountsWhoIsAhead) {
  JobQueue queue;
  Shape shapes[7];
  for (JobId job = 1; job <= 1'000; ++job) queue.Add(Key(static_cast<int>(job % 3), job), &shapes[job % 7]);
  EXPECT_EQ(queue.Ahead(Key(2, 2)), 0);
  EXPECT_EQ(queue.Ahead(Key(0, 999)), 999);
  EXPECT_EQ(queue.Ahead(Key(1, 1)), 333);
}

}  // namespace
}  // namespace closeknit
