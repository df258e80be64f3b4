// How other schedulers would place a gang: small re-tellings of their documented rules, for benches and the simulator.
//
// All take whole free hosts only, ignore parallelism (as the originals do), and are deterministic. Each returns hosts in the order in which
// the original numbers its ranks, or nothing where fewer than `slots` hosts are free. Costs come from placement/evaluate.h, the same for
// all.
#ifndef CLOSEKNIT_PLACEMENT_BASELINES_BASELINES_H_
#define CLOSEKNIT_PLACEMENT_BASELINES_BASELINES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster_model/cluster_view.h"

namespace closeknit {

using HostsInRankOrder = std::optional<std::vector<HostId>>;

// A scheduler without topology: hosts by chance, ranks in the order in which they came. `seed` makes the chance repeatable.
HostsInRankOrder PlaceAtRandom(const ClusterView& view, int slots, uint64_t seed);

// The first free hosts in the order of their names.
HostsInRankOrder PlaceFirstFit(const ClusterView& view, int slots);

// Slurm's topology/tree: the lowest switch below which the job fits, the one with the fewest free hosts; in it, leaves by best fit: the
// smallest that takes all that is missing, else the one with the most free hosts. Ranks in node-name order.
// Source: Slurm's Topology Guide and the comments of select/cons_tres (gres_select_util, _eval_nodes_topo).
HostsInRankOrder PlaceSlurmTree(const ClusterView& view, int slots);

// Slurm's topology/block with base blocks at `block_tier`: blocks aggregate by powers of two in fabric order; the smallest aggregate that
// fits, of those the one with the fewest free hosts; in it, full blocks first, the rest by best fit. Ranks in block order.
// Source: Slurm's Topology Guide, "Block topology".
HostsInRankOrder PlaceSlurmBlock(const ClusterView& view, int slots, Tier block_tier);

// Kueue's Topology-Aware Scheduling, BestFit profile: the lowest level with a domain that takes all pods, of those the smallest that does;
// going down, children by free capacity, most first, the last one by best fit. Pods are numbered in domain order.
// Source: Kueue KEP-2724, "Node assignment".
HostsInRankOrder PlaceKueueBestFit(const ClusterView& view, int slots);

// Volcano's network-topology-aware plugin: the lowest-tier HyperNode that fits, of those the fullest one (binpack score); tasks go one by
// one to the host that is nearest to those placed, by tier of the lowest common HyperNode, ties by name.
// Source: Volcano's design "Network Topology Aware Scheduling".
HostsInRankOrder PlaceVolcanoHyperNode(const ClusterView& view, int slots);

// All of the above by name, for tables. Block tier: 2 where there is one.
struct Baseline {
  absl::string_view name;
  HostsInRankOrder (*place)(const ClusterView& view, int slots);
};
absl::Span<const Baseline> AllBaselines();

}  // namespace closeknit

#endif  // CLOSEKNIT_PLACEMENT_BASELINES_BASELINES_H_
