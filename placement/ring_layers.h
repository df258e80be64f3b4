// A knapsack with a fixed number of items: from which c of a domain's children, and how many hosts of each, do n hosts cost least?
//
// With the fewest children that can hold n, hardly anything can be left out of them: the slack s, room of the c freest less n, is below one
// child's room. The state after some children is how many of the c are chosen and how many hosts fewer they give than c children of the
// largest room; of those numbers only s + 1 in a row can still lead to n, since the best that the children before could give and the best
// that those after can give are known. So O(m * min(c, m - c) * s^2) for m children instead of O(m * n * room).
#ifndef CLOSEKNIT_PLACEMENT_RING_LAYERS_H_
#define CLOSEKNIT_PLACEMENT_RING_LAYERS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "placement/ring_cost.h"

namespace closeknit {

template <typename Cost>
class RingLayers {
 public:
  // `rooms`: the most hosts that each child gives, > 0.
  RingLayers(std::vector<int> rooms, int chosen, int n) : rooms_(std::move(rooms)), chosen_(chosen), n_(n) {}

  // The least cost, or kInfeasible, and the hosts per child. `cost_of(i)`: [k] cost of k = 0..rooms[i] hosts of child i.
  Cost Solve(const std::function<std::vector<Cost>(size_t)>& cost_of, std::vector<int>* counts) {
    counts->assign(rooms_.size(), 0);
    const int m = static_cast<int>(rooms_.size());
    if (chosen_ > m || chosen_ > n_) return kInfeasible<Cost>;
    largest_ = *std::max_element(rooms_.begin(), rooms_.end());
    total_ = int64_t{chosen_} * largest_ - n_;
    FindSuffixes();
    if (suffix_[0][chosen_] > total_) return kInfeasible<Cost>;
    layers_.assign(chosen_ + 1, Layer());
    layers_[0] = {.from = 0, .cost = {0}};
    choices_.assign(m, std::vector<Layer>());
    for (int i = 0; i < m; ++i) AddChild(i, cost_of(i));
    const Layer& last = layers_[chosen_];
    if (last.At(total_) >= kInfeasible<Cost>) return kInfeasible<Cost>;
    Trace(counts);
    return last.At(total_);
  }

 private:
  // Values of consecutive states.
  struct Layer {
    int64_t from = 0;
    std::vector<Cost> cost;
    std::vector<uint32_t> taken;  // in choices_: hosts of the child
    Cost At(int64_t state) const {
      const int64_t index = state - from;
      return index < 0 || index >= static_cast<int64_t>(cost.size()) ? kInfeasible<Cost> : cost[index];
    }
  };

  // [i][j]: the least that j of the children i.. lie behind j of the largest room; too much where there are not so many.
  void FindSuffixes() {
    const size_t m = rooms_.size();
    suffix_.assign(m + 1, std::vector<int64_t>(chosen_ + 1, kNever));
    std::vector<int> best;  // rooms, largest first
    for (size_t i = m + 1; i-- > 0;) {
      if (i < m) best.insert(std::upper_bound(best.begin(), best.end(), rooms_[i], std::greater<int>()), rooms_[i]);
      int64_t behind = 0;
      suffix_[i][0] = 0;
      for (int j = 1; j <= std::min<int>(chosen_, static_cast<int>(best.size())); ++j) {
        behind += largest_ - best[j - 1];
        suffix_[i][j] = behind;
      }
    }
  }

  void AddChild(int i, const std::vector<Cost>& own) {
    const int m = static_cast<int>(rooms_.size());
    choices_[i].resize(chosen_ + 1);
    best_.insert(std::upper_bound(best_.begin(), best_.end(), rooms_[i], std::greater<int>()), rooms_[i]);
    for (int layer = std::min(chosen_, i + 1); layer >= std::max(1, chosen_ - (m - i - 1)); --layer) {
      int64_t from = 0;
      for (int j = 0; j < layer; ++j) from += largest_ - best_[j];
      const int64_t to = total_ - suffix_[i + 1][chosen_ - layer];
      Layer& now = layers_[layer];
      if (to < from) {
        now = Layer();
        continue;
      }
      Layer next = {.from = from};
      next.cost.resize(to - from + 1);
      for (int64_t s = from; s <= to; ++s) next.cost[s - from] = now.At(s);
      next.taken.assign(next.cost.size(), 0);
      Take(layers_[layer - 1], own, &next);
      choices_[i][layer].from = from;
      choices_[i][layer].taken = std::move(next.taken);
      now.from = from;
      now.cost = std::move(next.cost);
    }
  }

  // k hosts of the child beside what `before` stands for. The inner loop is where all the time goes.
  void Take(const Layer& before, const std::vector<Cost>& own, Layer* next) const {
    const int64_t end = next->from + static_cast<int64_t>(next->cost.size());
    const int64_t before_end = before.from + static_cast<int64_t>(before.cost.size());
    for (int k = static_cast<int>(own.size()) - 1; k >= 1; --k) {
      const int64_t behind = largest_ - k;
      if (before.from + behind >= end) break;
      if (own[k] >= kInfeasible<Cost>) continue;
      const int64_t first = std::max(next->from, before.from + behind);
      const int64_t last = std::min(end, before_end + behind);
      const Cost* const source = before.cost.data() + (first - behind - before.from);
      Cost* const target = next->cost.data() + (first - next->from);
      uint32_t* const taken = next->taken.data() + (first - next->from);
      const Cost price = own[k];
      for (int64_t s = 0; s < last - first; ++s) {
        const Cost cost = source[s] + price;
        const bool better = cost < target[s];
        target[s] = better ? cost : target[s];
        taken[s] = better ? static_cast<uint32_t>(k) : taken[s];
      }
    }
  }

  void Trace(std::vector<int>* counts) const {
    int64_t state = total_;
    int layer = chosen_;
    for (size_t i = rooms_.size(); i-- > 0 && layer > 0;) {
      const Layer& choice = choices_[i][layer];
      const int64_t index = state - choice.from;
      if (index < 0 || index >= static_cast<int64_t>(choice.taken.size()) || choice.taken[index] == 0) continue;
      (*counts)[i] = static_cast<int>(choice.taken[index]);
      state -= largest_ - (*counts)[i];
      --layer;
    }
  }

  static constexpr int64_t kNever = int64_t{1} << 60;
  const std::vector<int> rooms_;
  const int chosen_, n_;
  int64_t largest_ = 0;
  int64_t total_ = 0;  // the state in the end
  std::vector<std::vector<int64_t>> suffix_;
  std::vector<int> best_;  // rooms of the children so far, largest first
  std::vector<Layer> layers_;
  std::vector<std::vector<Layer>> choices_;  // [child][layer]
};

}  // namespace closeknit

#endif  // CLOSEKNIT_PLACEMENT_RING_LAYERS_H_
