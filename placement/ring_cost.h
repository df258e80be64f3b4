// Costs of host sets, packed into one integer: comparing packed costs compares the vectors lexicographically, adding adds them.
#ifndef CLOSEKNIT_PLACEMENT_RING_COST_H_
#define CLOSEKNIT_PLACEMENT_RING_COST_H_

#include <array>
#include <bit>
#include <cstdint>

#include "cluster_model/fabric.h"

namespace closeknit {

// Cost is uint64_t where the components fit, which makes the search several times faster, else a 128-bit integer.
using WideCost = unsigned __int128;

// The sum of two does not overflow, and is no less than one: a minimum over sums needs no test for it.
template <typename Cost>
inline constexpr Cost kInfeasible = Cost{1} << (sizeof(Cost) * 8 - 2);

// What one more of each thing costs. Components that do not fit weigh nothing: the least important ones, which are ties of ties (fabrics of
// six tiers with 10^6 hosts in 126 bits).
template <typename Cost>
struct RingUnits {
  std::array<Cost, kMaxTiers + 1> domain{};    // a domain touched at tier t
  std::array<Cost, kMaxTiers + 1> broken{};    // a whole-free domain of tier t touched
  std::array<Cost, kMaxTiers + 1> leftover{};  // a free host left over in a touched domain of tier t
  bool complete = true;                        // every component fits

  // `first`: tier whose number of domains counts before all else (0: the top); for limits on that number. The root is left out: what it
  // adds is the same for all sets.
  RingUnits(const Fabric& fabric, Tier first) {
    const Tier top = fabric.top();
    // From the least important component up.
    for (Tier t = top - 1; t >= 1; --t) Add(&leftover[t], fabric.hosts().size());
    for (Tier t = 1; t < top; ++t) Add(&broken[t], fabric.DomainsAt(t).size());
    for (Tier t = 1; t < top; ++t) {
      if (t != first) Add(&domain[t], fabric.DomainsAt(t).size());
    }
    if (first != 0) Add(&domain[first], fabric.DomainsAt(first).size());
    Pack();
  }

 private:
  static constexpr int kBits = static_cast<int>(sizeof(Cost)) * 8 - 2;

  void Add(Cost* unit, size_t most) {
    components_[count_] = unit;
    bits_[count_++] = std::bit_width(most);
  }
  void Pack() {
    int total = 0;
    for (size_t i = 0; i < count_; ++i) total += bits_[i];
    complete = total <= kBits;
    int shift = 0;
    for (size_t i = 0; i < count_; ++i) {
      if (total > kBits) {
        total -= bits_[i];
        continue;
      }
      *components_[i] = Cost{1} << shift;
      shift += bits_[i];
    }
  }

  std::array<Cost*, 3 * kMaxTiers> components_{};
  std::array<int, 3 * kMaxTiers> bits_{};
  size_t count_ = 0;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_PLACEMENT_RING_COST_H_
