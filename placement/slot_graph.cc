#include "placement/slot_graph.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace closeknit {
namespace {

void AddEdge(std::vector<SlotEdge>* edges, int to, double bytes, double sent) {
  for (SlotEdge& edge : *edges) {
    if (edge.to != to) continue;
    edge.bytes += bytes;
    edge.sent += sent;
    return;
  }
  edges->push_back({to, bytes, sent});
}

}  // namespace

absl::StatusOr<SlotGraph> SlotGraph::Build(const GangRequest& request) {
  const int64_t g = request.ranks_per_slot, ranks = request.slots * g;
  std::vector<Dimension> dimensions = request.dimensions;
  if (dimensions.empty()) dimensions.push_back({.name = "dp", .degree = static_cast<int>(ranks)});
  SlotGraph graph;
  graph.edges_.resize(request.slots);
  // `from` sends `bytes` to `to`.
  const auto send = [&](int64_t from, int64_t to, double bytes) {
    const int a = static_cast<int>(from / g), b = static_cast<int>(to / g);
    if (a == b || bytes == 0) return;
    AddEdge(&graph.edges_[a], b, bytes, bytes);
    AddEdge(&graph.edges_[b], a, bytes, 0);
  };
  int64_t stride = 1, total = 0;
  for (const Dimension& dimension : dimensions) {
    const int64_t k = dimension.degree;
    total += ranks * (dimension.pattern == Pattern::kAllToAll ? k - 1 : 2);
    if (total > kMaxRankEdges) {
      return absl::InvalidArgumentError(
          absl::StrCat("parallelism: ", dimension.name, "=", k, " makes more than ", kMaxRankEdges, " edges"));
    }
    const bool leaves_hosts = k > 1 && stride * k > 1 && (stride * k > g || g % (stride * k) != 0);
    for (int64_t rank = 0; leaves_hosts && rank < ranks; ++rank) {
      const int64_t c = rank / stride % k;
      const int64_t base = rank - c * stride;
      switch (dimension.pattern) {
        case Pattern::kRing:
          send(rank, base + (c + 1) % k * stride, dimension.bytes);
          break;
        case Pattern::kChain:
          if (c + 1 < k) {
            send(rank, rank + stride, dimension.bytes);
            send(rank + stride, rank, dimension.bytes);
          } else {
            send(rank, base, dimension.wrap_bytes);
            send(base, rank, dimension.wrap_bytes);
          }
          break;
        case Pattern::kAllToAll:
          for (int64_t other = 0; other < k; ++other) {
            if (other != c) send(rank, base + other * stride, dimension.bytes / static_cast<double>(k - 1));
          }
          break;
      }
    }
    stride *= k;
  }
  return graph;
}

TierBytes SlotGraph::Traffic(const Fabric& fabric, absl::Span<const HostId> hosts) const {
  TierBytes by_tier{};  // bytes between hosts whose lowest common domain is of that tier
  for (int slot = 0; slot < slots(); ++slot) {
    for (const SlotEdge& edge : edges_[slot]) {
      if (edge.to > slot) by_tier[fabric.CommonTier(hosts[slot], hosts[edge.to])] += edge.bytes;
    }
  }
  TierBytes traffic{};
  for (Tier s = fabric.top() - 1; s >= 0; --s) traffic[s] = traffic[s + 1] + by_tier[s + 1];
  return traffic;
}

TierBytes SlotGraph::TrafficOf(const Fabric& fabric, absl::Span<const HostId> hosts, int slot, HostId host) const {
  TierBytes by_tier{};
  for (const SlotEdge& edge : edges_[slot]) by_tier[fabric.CommonTier(host, hosts[edge.to])] += edge.bytes;
  TierBytes traffic{};
  for (Tier s = fabric.top() - 1; s >= 0; --s) traffic[s] = traffic[s + 1] + by_tier[s + 1];
  return traffic;
}

std::optional<PlainRing> AsPlainRing(const GangRequest& request) {
  const int64_t g = request.ranks_per_slot, ranks = request.slots * g;
  if (request.dimensions.empty()) return PlainRing();
  std::optional<PlainRing> ring;
  int64_t stride = 1;
  for (const Dimension& dimension : request.dimensions) {
    const int64_t reach = stride * dimension.degree;
    const bool inside = g % reach == 0;
    if (dimension.degree > 1 && !inside) {
      if (ring.has_value() || dimension.pattern == Pattern::kAllToAll || g % stride != 0 || reach != ranks) return std::nullopt;
      ring = PlainRing{.communicators = static_cast<int>(stride),
                       .bytes = dimension.bytes,
                       .wrap_bytes = dimension.wrap_bytes,
                       .chain = dimension.pattern == Pattern::kChain};
    }
    stride = reach;
  }
  // Nothing leaves hosts: any place is as good, and the one that is most together leaves most room.
  return ring.has_value() ? ring : PlainRing{.bytes = 0};
}

int CompareTraffic(const TierBytes& a, const TierBytes& b) {
  for (int s = kMaxTiers; s >= 0; --s) {
    const double scale = std::max(std::abs(a[s]), std::abs(b[s]));
    if (std::abs(a[s] - b[s]) > 1e-9 * scale) return a[s] < b[s] ? -1 : 1;
  }
  return 0;
}

}  // namespace closeknit
