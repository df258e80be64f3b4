#include "placement/evaluate.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace closeknit {
namespace {

absl::Status Check(const Fabric& fabric, const GangRequest& request, absl::Span<const HostId> hosts) {
  if (hosts.size() != static_cast<size_t>(request.slots)) {
    return absl::InvalidArgumentError(absl::StrCat("the map has ", hosts.size(), " hosts, the gang ", request.slots, " slots"));
  }
  absl::flat_hash_set<HostId> seen;
  for (const HostId host : hosts) {
    if (!seen.insert(host).second) return absl::InvalidArgumentError(absl::StrCat("the map has ", fabric.host(host).name, " twice"));
  }
  int64_t product = 1;
  for (const Dimension& dimension : request.dimensions) product *= dimension.degree;
  const int64_t ranks = int64_t{request.slots} * request.ranks_per_slot;
  if (!request.dimensions.empty() && product != ranks) {
    return absl::InvalidArgumentError(absl::StrCat("the degrees multiply to ", product, ", the gang has ", ranks, " ranks"));
  }
  return absl::OkStatus();
}

// Walks the edges of one communicator: ranks first, first + stride, ..., `degree` of them.
class Walker {
 public:
  Walker(const Fabric& fabric, const GangRequest& request, absl::Span<const HostId> hosts)
      : fabric_(fabric), request_(request), hosts_(hosts) {}

  void Communicator(const Dimension& dimension, int64_t first, int64_t stride) {
    const int k = dimension.degree;
    const auto rank = [&](int c) { return first + c * stride; };
    switch (dimension.pattern) {
      case Pattern::kRing:
        for (int c = 0; k > 1 && c < k; ++c) Edge(rank(c), rank(c + 1 == k ? 0 : c + 1), dimension.bytes);
        return;
      case Pattern::kChain:
        for (int c = 0; c + 1 < k; ++c) {
          Edge(rank(c), rank(c + 1), dimension.bytes);
          Edge(rank(c + 1), rank(c), dimension.bytes);
        }
        if (k > 1 && dimension.wrap_bytes > 0) {
          Edge(rank(k - 1), rank(0), dimension.wrap_bytes);
          Edge(rank(0), rank(k - 1), dimension.wrap_bytes);
        }
        return;
      case Pattern::kAllToAll:
        for (int a = 0; a < k; ++a) {
          for (int b = 0; b < k; ++b) {
            if (a != b) Edge(rank(a), rank(b), dimension.bytes / (k - 1));
          }
        }
        return;
    }
  }

  TierBytes traffic() const {
    TierBytes traffic{};
    // An edge whose ends meet at tier m climbs the uplinks of all tiers below m.
    for (Tier s = fabric_.top() - 1; s >= 0; --s) traffic[s] = traffic[s + 1] + met_[s + 1];
    return traffic;
  }

 private:
  void Edge(int64_t from, int64_t to, double bytes) {
    const HostId a = hosts_[from / request_.ranks_per_slot], b = hosts_[to / request_.ranks_per_slot];
    if (a != b) met_[fabric_.CommonTier(a, b)] += bytes;
  }

  const Fabric& fabric_;
  const GangRequest& request_;
  const absl::Span<const HostId> hosts_;
  TierBytes met_{};  // bytes of edges by the tier at which their ends meet
};

}  // namespace

absl::StatusOr<TierBytes> EvaluateTraffic(const Fabric& fabric, const GangRequest& request, absl::Span<const HostId> hosts) {
  if (const absl::Status status = Check(fabric, request, hosts); !status.ok()) return status;
  const int64_t ranks = int64_t{request.slots} * request.ranks_per_slot;
  std::vector<Dimension> dimensions = request.dimensions;
  if (dimensions.empty()) dimensions.push_back({.name = "dp", .degree = static_cast<int>(ranks)});
  Walker walker(fabric, request, hosts);
  int64_t stride = 1;
  for (const Dimension& dimension : dimensions) {
    const int64_t reach = stride * dimension.degree;
    for (int64_t outer = 0; outer < ranks; outer += reach) {
      for (int64_t inner = 0; inner < stride; ++inner) walker.Communicator(dimension, outer + inner, stride);
    }
    stride = reach;
  }
  return walker.traffic();
}

}  // namespace closeknit
