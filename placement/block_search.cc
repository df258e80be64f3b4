#include "placement/block_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace closeknit {
namespace {

constexpr int kSwapTries = 40'000;  // about 10 ms
constexpr int kSwapReach = 64;      // partners tried for each slot
constexpr int64_t kMaxBoundSteps = 20'000'000;

// The dimensions of a request that leave hosts, with their slot strides and spans.
struct Outer {
  const Dimension* dimension;
  int64_t stride, reach;  // in ranks
};
std::vector<Outer> OuterDimensions(const GangRequest& request) {
  std::vector<Outer> outer;
  int64_t stride = 1;
  for (const Dimension& dimension : request.dimensions) {
    const int64_t reach = stride * dimension.degree;
    if (dimension.degree > 1 && request.ranks_per_slot % reach != 0) outer.push_back({&dimension, stride, reach});
    stride = reach;
  }
  return outer;
}

// Bytes over the border of a set that holds some but not all ranks of one communicator: the least over such sets.
double LeastCut(const Dimension& dimension) {
  switch (dimension.pattern) {
    case Pattern::kRing:
      return 2 * dimension.bytes;  // one edge out, one in
    case Pattern::kChain:
      return 2 * dimension.bytes + (dimension.wrap_bytes > 0 ? std::min(dimension.bytes, dimension.wrap_bytes) * 2 : 0);
    case Pattern::kAllToAll:
      return 2 * dimension.bytes;  // one rank against the others
  }
  return 0;
}

std::vector<HostId> Arrange(const std::vector<HostId>& hosts, const SlotGrid& grid, int tile_rows, int tile_columns) {
  std::vector<HostId> by_slot(hosts.size());
  size_t next = 0;
  for (int row = 0; row < grid.rows; row += tile_rows) {
    for (int column = 0; column < grid.columns; column += tile_columns) {
      for (int r = row; r < row + tile_rows; ++r) {
        for (int c = column; c < column + tile_columns; ++c) by_slot[r * grid.columns + c] = hosts[next++];
      }
    }
  }
  return by_slot;
}

std::vector<int> Divisors(int n) {
  std::vector<int> divisors;
  for (int d = 1; d <= n; ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return divisors;
}

void Add(TierBytes* sum, const TierBytes& part, double sign) {
  for (size_t s = 0; s < sum->size(); ++s) (*sum)[s] += sign * part[s];
}

// The change of traffic when two slots change places.
TierBytes SwapGain(const Fabric& fabric, const SlotGraph& graph, std::vector<HostId>& hosts, int a, int b) {
  TierBytes change{};
  Add(&change, graph.TrafficOf(fabric, hosts, a, hosts[a]), -1);
  Add(&change, graph.TrafficOf(fabric, hosts, b, hosts[b]), -1);
  std::swap(hosts[a], hosts[b]);
  Add(&change, graph.TrafficOf(fabric, hosts, a, hosts[a]), 1);
  Add(&change, graph.TrafficOf(fabric, hosts, b, hosts[b]), 1);
  std::swap(hosts[a], hosts[b]);
  return change;
}

bool Improves(const TierBytes& change) {
  double scale = 0;
  for (const double value : change) scale = std::max(scale, std::abs(value));
  for (int s = kMaxTiers; s >= 0; --s) {
    if (std::abs(change[s]) > 1e-9 * scale) return change[s] < 0;
  }
  return false;
}

// Slots whose neighbours lie beyond their domain change places with slots near those neighbours.
void Swap(const Fabric& fabric, const SlotGraph& graph, std::vector<HostId>* hosts) {
  int tries = kSwapTries;
  for (bool improved = true; improved && tries > 0;) {
    improved = false;
    for (int a = 0; a < graph.slots() && tries > 0; ++a) {
      for (const SlotEdge& edge : graph.edges(a)) {
        if (fabric.CommonTier((*hosts)[a], (*hosts)[edge.to]) < 2) continue;
        const int from = std::max(0, edge.to - kSwapReach / 2), to = std::min(graph.slots(), edge.to + kSwapReach / 2);
        for (int b = from; b < to && tries > 0; ++b) {
          if (b == a || fabric.CommonTier((*hosts)[a], (*hosts)[b]) < 2) continue;
          --tries;
          if (!Improves(SwapGain(fabric, graph, *hosts, a, b))) continue;
          std::swap((*hosts)[a], (*hosts)[b]);
          improved = true;
        }
      }
    }
  }
}

// Bytes over the border of a set that holds a row of the grid, or a column, in part: the least.
struct LineCuts {
  double row = 0, column = 0;
};
LineCuts CutsOf(const GangRequest& request, const SlotGrid& grid) {
  const int64_t g = request.ranks_per_slot;
  LineCuts cuts;
  for (const Outer& outer : OuterDimensions(request)) {
    const bool outermost = outer.reach == int64_t{request.slots} * g && grid.rows > 1;
    if (outermost) {
      cuts.column += static_cast<double>(g) * LeastCut(*outer.dimension);
    } else if (outer.reach == int64_t{grid.columns} * g && outer.stride <= g) {
      // Its communicators span the whole row, `stride` of them side by side. Of other inner dimensions a part of a row may hold whole
      // communicators: they count nothing here.
      cuts.row += static_cast<double>(outer.stride) * LeastCut(*outer.dimension);
    }
  }
  return cuts;
}

// The least weight that leaves any set of `a` slots.
double LeastBorder(const SlotGrid& grid, const LineCuts& cuts, int64_t a) {
  double least = std::numeric_limits<double>::max();
  for (int64_t rows = 1; rows <= std::min<int64_t>(a, grid.rows); ++rows) {
    const int64_t columns = (a + rows - 1) / rows;  // at the least
    if (columns > grid.columns) continue;
    const int64_t whole_columns = rows < grid.rows ? 0 : a / grid.rows;
    // No row is whole: the fewest columns are the best.
    if (columns < grid.columns) {
      least = std::min(
          least, static_cast<double>(rows) * cuts.row + static_cast<double>(columns - std::min(columns, whole_columns)) * cuts.column);
    }
    // Some rows are: then every column is touched.
    const int64_t whole_rows = std::min(rows, a / grid.columns);
    least = std::min(least, static_cast<double>(rows - whole_rows) * cuts.row +
                                static_cast<double>(grid.columns - std::min<int64_t>(grid.columns, whole_columns)) * cuts.column);
  }
  return least;
}

// The least sum of borders of groups of 1..room slots, `slots` in all.
double LeastBorders(const SlotGrid& grid, const LineCuts& cuts, int64_t slots, int64_t room) {
  std::vector<double> border(room + 1, 0);
  double ratio = std::numeric_limits<double>::max();
  for (int64_t a = 1; a <= room; ++a) {
    border[a] = LeastBorder(grid, cuts, a);
    ratio = std::min(ratio, border[a] / static_cast<double>(a));
  }
  if (slots * room > kMaxBoundSteps) return ratio * static_cast<double>(slots);
  std::vector<double> sum(slots + 1, std::numeric_limits<double>::max());
  sum[0] = 0;
  for (int64_t n = 1; n <= slots; ++n) {
    for (int64_t a = 1; a <= std::min(n, room); ++a) sum[n] = std::min(sum[n], sum[n - a] + border[a]);
  }
  return sum[slots];
}

}  // namespace

SlotGrid GridOf(const GangRequest& request) {
  const std::vector<Outer> outer = OuterDimensions(request);
  SlotGrid grid = {.rows = 1, .columns = request.slots};
  if (outer.size() < 2) return grid;
  // The outermost dimension runs over replicas; what lies below it is one replica.
  const int64_t replica = outer.back().stride;
  if (replica % request.ranks_per_slot != 0) return grid;
  grid.columns = static_cast<int>(replica / request.ranks_per_slot);
  grid.rows = request.slots / grid.columns;
  return grid;
}

std::vector<HostId> OrderHosts(const Fabric& fabric, const GangRequest& request, const SlotGraph& graph, const std::vector<HostId>& hosts) {
  const SlotGrid grid = GridOf(request);
  std::vector<HostId> best = hosts;  // replica-major
  TierBytes least = graph.Traffic(fabric, best);
  for (const int rows : Divisors(grid.rows)) {
    for (const int columns : Divisors(grid.columns)) {
      std::vector<HostId> order = Arrange(hosts, grid, rows, columns);
      const TierBytes traffic = graph.Traffic(fabric, order);
      if (CompareTraffic(traffic, least) >= 0) continue;
      least = traffic;
      best = std::move(order);
    }
  }
  Swap(fabric, graph, &best);
  return best;
}

TierBytes LowerBound(const Usable& usable, const GangRequest& request) {
  const Fabric& fabric = usable.fabric();
  const SlotGrid grid = GridOf(request);
  const LineCuts cuts = CutsOf(request, grid);
  TierBytes bound{};
  for (Tier s = 0; s < fabric.top(); ++s) {
    int64_t room = 1;
    if (s > 0) {
      room = 0;
      for (const DomainId id : fabric.DomainsAt(s)) room = std::max<int64_t>(room, usable.Count(id));
    }
    if (room >= request.slots) continue;  // one domain may hold it all
    // Every byte over a border leaves one group and enters another: it is counted twice.
    bound[s] = LeastBorders(grid, cuts, request.slots, room) / 2;
  }
  for (Tier s = fabric.top() - 1; s > 0; --s) bound[s - 1] = std::max(bound[s - 1], bound[s]);
  return bound;
}

}  // namespace closeknit
