// The jobs that could start if they fitted, in the order in which they shall.
//
// Jobs of one shape stand behind each other; only the first of each shape is ever looked at. A stalled shape (it cannot fit before a host
// comes back, whatever ends) keeps its jobs' places but stands in nobody's way.
#ifndef CLOSEKNIT_SCHEDULER_CORE_QUEUE_H_
#define CLOSEKNIT_SCHEDULER_CORE_QUEUE_H_

#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>
#include <functional>
#include <optional>

#include "absl/container/btree_map.h"
#include "scheduler/core/shape.h"

namespace closeknit {

class JobQueue {
 public:
  // O(log jobs) each.
  void Add(const QueueKey& key, Shape* shape);
  void Remove(const QueueKey& key, Shape* shape);

  struct Front {
    QueueKey key;
    Shape* shape = nullptr;
  };
  // The first job of all shapes that are not stalled.
  std::optional<Front> front() const;

  void Stall(Shape* shape);
  // Every stalled shape stands in line again. O(stalled shapes).
  void Wake();

  // Jobs before `key`, which need not be in the queue. O(log jobs).
  int Ahead(const QueueKey& key) const { return static_cast<int>(order_.order_of_key(key)); }
  int size() const { return static_cast<int>(order_.size()); }

 private:
  using Fronts = absl::btree_map<QueueKey, Shape*>;
  using Order = __gnu_pbds::tree<QueueKey, __gnu_pbds::null_type, std::less<QueueKey>, __gnu_pbds::rb_tree_tag,
                                 __gnu_pbds::tree_order_statistics_node_update>;

  Fronts& FrontsOf(const Shape& shape) { return shape.stalled ? stalled_ : fronts_; }

  Fronts fronts_, stalled_;  // the first job of each shape
  Order order_;              // all jobs
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_CORE_QUEUE_H_
