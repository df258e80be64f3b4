// Strong ids of the cluster model, and the set of a host's GPUs.
#ifndef CLOSEKNIT_CLUSTER_MODEL_IDS_H_
#define CLOSEKNIT_CLUSTER_MODEL_IDS_H_

#include <bit>
#include <compare>
#include <cstdint>
#include <utility>

namespace closeknit {

// An index with a type of its own: a HostId cannot be passed for a DomainId.
template <typename Tag>
struct Id {
  uint32_t value = 0;
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Id& id) {
    return H::combine(std::move(h), id.value);
  }
};

using HostId = Id<struct HostTag>;      // index into Fabric::hosts(), in fabric order
using DomainId = Id<struct DomainTag>;  // index into Fabric::domains()

using JobId = uint64_t;
using AttemptNumber = uint32_t;

// 0: the host itself; 1: rack, leaf or scalable unit; ... ; Fabric::top(): the root.
using Tier = int;
inline constexpr Tier kMaxTiers = 6;

// GPUs of one host by index, at most 64.
class GpuSet {
 public:
  constexpr GpuSet() = default;
  constexpr explicit GpuSet(uint64_t bits) : bits_(bits) {}
  static constexpr GpuSet First(int count) { return GpuSet(count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1); }

  constexpr int size() const { return std::popcount(bits_); }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr uint64_t bits() const { return bits_; }
  constexpr bool Has(int gpu) const { return (bits_ >> gpu & 1) != 0; }
  constexpr void Add(int gpu) { bits_ |= uint64_t{1} << gpu; }
  constexpr bool Contains(GpuSet other) const { return (other.bits_ & ~bits_) == 0; }

  friend constexpr GpuSet operator|(GpuSet a, GpuSet b) { return GpuSet(a.bits_ | b.bits_); }
  friend constexpr GpuSet operator&(GpuSet a, GpuSet b) { return GpuSet(a.bits_ & b.bits_); }
  friend constexpr GpuSet operator-(GpuSet a, GpuSet b) { return GpuSet(a.bits_ & ~b.bits_); }
  friend constexpr bool operator==(GpuSet, GpuSet) = default;

 private:
  uint64_t bits_ = 0;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_IDS_H_
