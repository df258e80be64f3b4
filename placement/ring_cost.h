// Costs of host sets, packed into one integer: comparing packed costs compares the vectors lexicographically, adding adds them.
#ifndef CLOSEKNIT_PLACEMENT_RING_COST_H_
#define CLOSEKNIT_PLACEMENT_RING_COST_H_

#include <array>
#include <bit>

#include "cluster_model/fabric.h"

namespace closeknit {

using RingCost = unsigned __int128;
inline constexpr RingCost kInfeasible = ~RingCost{0} >> 1;  // the sum of two does not overflow

// What one more of each thing costs. Components that no longer fit 126 bits (fabrics of six tiers with 10^6 hosts) weigh nothing: the least
// important ones, which are ties of ties.
struct RingUnits {
  std::array<RingCost, kMaxTiers + 1> domain{};    // a domain touched at tier t
  std::array<RingCost, kMaxTiers + 1> broken{};    // a whole-free domain of tier t touched
  std::array<RingCost, kMaxTiers + 1> leftover{};  // a free host left over in a touched domain of tier t

  // `first`: tier whose number of domains counts before all else (0: the top); for limits on that number.
  RingUnits(const Fabric& fabric, Tier first) {
    // From the least important component up.
    std::array<RingCost*, 3 * kMaxTiers> components{};
    std::array<size_t, 3 * kMaxTiers> sizes{};
    size_t count = 0;
    const auto add = [&](RingCost* unit, size_t most) {
      components[count] = unit;
      sizes[count++] = most;
    };
    const Tier top = fabric.top();
    for (Tier t = top; t >= 1; --t) add(&leftover[t], fabric.hosts().size());
    for (Tier t = 1; t <= top; ++t) add(&broken[t], fabric.DomainsAt(t).size());
    for (Tier t = 1; t < top; ++t) {
      if (t != first) add(&domain[t], fabric.DomainsAt(t).size());
    }
    if (first != 0) add(&domain[first], fabric.DomainsAt(first).size());
    int total = 0;
    for (size_t i = 0; i < count; ++i) total += std::bit_width(sizes[i]);
    int shift = 0;
    for (size_t i = 0; i < count; ++i) {
      const int bits = std::bit_width(sizes[i]);
      if (total > 126) {
        total -= bits;
        continue;
      }
      *components[i] = RingCost{1} << shift;
      shift += bits;
    }
  }
};

}  // namespace closeknit

#endif  // CLOSEKNIT_PLACEMENT_RING_COST_H_
