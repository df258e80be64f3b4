#include "placement/gpus.h"

#include <bit>
#include <optional>

#include "proto/base/check.h"

namespace closeknit {

GpuSet ChooseGpus(GpuSet free, int count) {
  CHECK(free.size() >= count) << count << " GPUs of " << free.size();
  if (count == free.size()) return free;
  if (count == 0) return GpuSet();
  for (int size = static_cast<int>(std::bit_ceil(static_cast<unsigned>(count)));; size *= 2) {
    std::optional<GpuSet> best;
    for (int first = 0; first < 64; first += size) {
      const uint64_t bits = size >= 64 ? ~uint64_t{0} : ((uint64_t{1} << size) - 1) << first;
      const GpuSet block = free & GpuSet(bits);
      if (block.size() >= count && (!best.has_value() || block.size() < best->size())) best = block;
    }
    if (!best.has_value()) continue;
    // Of a block that has more than is asked for, again the tightest part: one pair before two halves of pairs.
    GpuSet chosen;
    for (int gpu = 0; gpu < 64 && chosen.size() < count; ++gpu) {
      if (best->Has(gpu)) chosen.Add(gpu);
    }
    return chosen;
  }
}

}  // namespace closeknit
