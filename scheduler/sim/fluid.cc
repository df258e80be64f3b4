#include "scheduler/sim/fluid.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "proto/base/check.h"

namespace closeknit {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

uint64_t Mix(uint64_t z) {  // splitmix64's finaliser
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Numbers the links of a fabric: for each host and domain and direction, one link (ideal) or one a parallel link (ECMP).
class LinkTable {
 public:
  LinkTable(const Fabric& fabric, Routing routing, FlowProblem* problem) : fabric_(fabric), routing_(routing), problem_(problem) {
    for (const Host& host : fabric.hosts()) hosts_.push_back(Add(host.nics));
    for (const Domain& domain : fabric.domains()) domains_.push_back(Add(domain.uplinks));
  }

  // Appends the links from `from` up to the lowest common domain and down to `to`. A flow keeps to NIC `rail` on both hosts.
  void AppendPath(HostId from, HostId to, int rail, uint64_t flow_hash, std::vector<uint32_t>* path) const {
    const Tier common = fabric_.CommonTier(from, to);
    path->push_back(Rail(hosts_[from.value], rail, kUp));
    for (Tier tier = 1; tier < common; ++tier) path->push_back(Hashed(fabric_.DomainOf(from, tier), kUp, flow_hash));
    for (Tier tier = common - 1; tier >= 1; --tier) path->push_back(Hashed(fabric_.DomainOf(to, tier), kDown, flow_hash));
    path->push_back(Rail(hosts_[to.value], rail, kDown));
  }

 private:
  enum Direction { kUp = 0, kDown = 1 };
  struct Group {
    uint32_t first = 0;
    uint32_t count = 0;  // links a direction
  };

  Group Add(const Uplinks& uplinks) {
    const uint32_t links = routing_ == Routing::kEcmp ? uplinks.count : std::min<uint32_t>(uplinks.count, 1);
    const Group group = {static_cast<uint32_t>(problem_->capacity_gbps.size()), links};
    const double capacity = routing_ == Routing::kEcmp ? uplinks.gbps : uplinks.total_gbps();
    problem_->capacity_gbps.insert(problem_->capacity_gbps.end(), 2 * links, capacity);
    return group;
  }

  static uint32_t Rail(const Group& group, int rail, Direction direction) {
    return group.first + direction * group.count + static_cast<uint32_t>(rail) % group.count;
  }

  uint32_t Hashed(DomainId domain, Direction direction, uint64_t flow_hash) const {
    const Group& group = domains_[domain.value];
    return group.first + direction * group.count + static_cast<uint32_t>(Mix(flow_hash + 2 * domain.value + direction) % group.count);
  }

  const Fabric& fabric_;
  const Routing routing_;
  FlowProblem* const problem_;
  std::vector<Group> hosts_, domains_;
};

}  // namespace

std::vector<double> MaxMinFairRates(const FlowProblem& problem) {
  const size_t links = problem.capacity_gbps.size();
  std::vector<std::vector<uint32_t>> flows_of(links);
  for (uint32_t flow = 0; flow < problem.paths.size(); ++flow) {
    for (const uint32_t link : problem.paths[flow]) flows_of[link].push_back(flow);
  }
  std::vector<double> left = problem.capacity_gbps;
  std::vector<int> active(links);
  // (fair share, link), least first. Shares only grow as flows are fixed, so a stale entry is pushed again with its present share.
  using Entry = std::pair<double, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  for (uint32_t link = 0; link < links; ++link) {
    active[link] = static_cast<int>(flows_of[link].size());
    if (active[link] > 0) queue.emplace(left[link] / active[link], link);
  }
  std::vector<double> rates(problem.paths.size(), kUnlimited);
  while (!queue.empty()) {
    const auto [share, link] = queue.top();
    queue.pop();
    if (active[link] == 0) continue;
    const double present = left[link] / active[link];
    if (present > share * (1 + 1e-12)) {
      queue.emplace(present, link);
      continue;
    }
    for (const uint32_t flow : flows_of[link]) {
      if (rates[flow] != kUnlimited) continue;
      rates[flow] = present;
      for (const uint32_t other : problem.paths[flow]) {
        left[other] = std::max(0.0, left[other] - present);
        --active[other];
      }
    }
  }
  return rates;
}

absl::StatusOr<double> SlowestRingEdgeGbps(const Fabric& fabric, absl::Span<const HostId> hosts, const AllGatherModel& model) {
  if (hosts.size() < 2) return absl::InvalidArgumentError("a ring needs at least 2 hosts");
  if (!fabric.StatesCapacities()) {
    return absl::FailedPreconditionError("the fabric does not state the capacity of every uplink and NIC; add them to its description");
  }
  FlowProblem problem;
  const LinkTable links(fabric, model.routing, &problem);
  std::vector<size_t> first_flow;  // of each edge
  for (size_t i = 0; i < hosts.size(); ++i) {
    const HostId from = hosts[i], to = hosts[(i + 1) % hosts.size()];
    first_flow.push_back(problem.paths.size());
    const int rails = static_cast<int>(fabric.host(from).nics.count);
    for (int rail = 0; rail < rails; ++rail) {
      for (int k = 0; k < model.flows_per_rail; ++k) {
        const uint64_t hash = Mix(model.seed + Mix((uint64_t{from.value} << 32 | to.value) + Mix(uint64_t(rail) << 16 | uint64_t(k))));
        links.AppendPath(from, to, rail, hash, &problem.paths.emplace_back());
      }
    }
  }
  first_flow.push_back(problem.paths.size());
  const std::vector<double> rates = MaxMinFairRates(problem);
  // NCCL splits a transfer evenly over the flows of a rail and the rails of a host: the slowest flow sets the pace of its edge.
  double slowest = kUnlimited;
  for (size_t edge = 0; edge + 1 < first_flow.size(); ++edge) {
    double least = kUnlimited;
    for (size_t flow = first_flow[edge]; flow < first_flow[edge + 1]; ++flow) least = std::min(least, rates[flow]);
    slowest = std::min(slowest, least * static_cast<double>(first_flow[edge + 1] - first_flow[edge]));
  }
  CHECK(slowest > 0) << "a flow without bandwidth";
  return slowest;
}

double NormalisedBandwidth(double slowest_edge_gbps, double nic_gbps, int hosts, int ranks, double bytes, absl::Duration step_latency) {
  // Each host's NICs carry (hosts - 1)/hosts of the result; a ring over all ranks takes ranks - 1 steps.
  const double bits = 8 * bytes * (hosts - 1) / hosts;
  const double ideal_seconds = bits / (nic_gbps * 1e9);
  const double seconds = bits / (std::min(slowest_edge_gbps, nic_gbps) * 1e9) + (ranks - 1) * absl::ToDoubleSeconds(step_latency);
  return 100 * ideal_seconds / seconds;
}

}  // namespace closeknit
