// What is due when. Each key has at most one time; equal times come in key order, so that the answer never depends on chance.
#ifndef CLOSEKNIT_SCHEDULER_CORE_TIMERS_H_
#define CLOSEKNIT_SCHEDULER_CORE_TIMERS_H_

#include <optional>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/time/time.h"

namespace closeknit {

template <typename Key>
class Timers {
 public:
  // Replaces the time of `key`, which the caller keeps in `*current`. InfiniteFuture: none.
  void Set(const Key& key, absl::Time time, absl::Time* current) {
    if (*current == time) return;
    if (*current != absl::InfiniteFuture()) due_.erase({*current, key});
    if (time != absl::InfiniteFuture()) due_.insert({time, key});
    *current = time;
  }

  absl::Time next() const { return due_.empty() ? absl::InfiniteFuture() : due_.begin()->first; }

  // The first key whose time has come; it stays set.
  std::optional<Key> Due(absl::Time now) const {
    if (next() > now) return std::nullopt;
    return due_.begin()->second;
  }

 private:
  absl::btree_set<std::pair<absl::Time, Key>> due_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_CORE_TIMERS_H_
