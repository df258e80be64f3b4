// A fluid model of flows on a fabric: max-min fair rates, and from them the bandwidth of a ring AllGather.
//
// What it holds: capacities of NICs and uplinks in both directions, fair shares (Bertsekas & Gallager, "Data Networks", 6.5.2: progressive
// filling), hashing of flows onto the parallel links of an uplink (ECMP), a fixed latency a step. What it does not: packets, congestion
// control that is unfair or slow, adaptive routing, other jobs' traffic, links inside a host. Pure: `seed` is the only chance in it.
#ifndef CLOSEKNIT_SCHEDULER_SIM_FLUID_H_
#define CLOSEKNIT_SCHEDULER_SIM_FLUID_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cluster_model/fabric.h"

namespace closeknit {

// Flows over links, by index. A flow uses every link of its path.
struct FlowProblem {
  std::vector<double> capacity_gbps;         // by link, > 0
  std::vector<std::vector<uint32_t>> paths;  // by flow: links; an empty path is unlimited
};

// Max-min fair rates in Gbit/s, by flow; infinity for an empty path. O((links + path entries) · log links).
std::vector<double> MaxMinFairRates(const FlowProblem& problem);

enum class Routing {
  kIdeal,  // the parallel links of an uplink are one link of their total capacity
  kEcmp,   // each flow is hashed onto one of them at every hop
};

struct AllGatherModel {
  int flows_per_rail = 1;  // queue pairs of one NIC to its neighbour (NCCL_IB_QPS_PER_CONNECTION)
  Routing routing = Routing::kIdeal;
  uint64_t seed = 1;                                     // of the hash
  absl::Duration step_latency = absl::Microseconds(10);  // of one ring step: kernel, NIC, switches
};

// Rate of the slowest edge of a ring over `hosts` in this order, all rails together, Gbit/s: what bounds a ring collective.
// kInvalidArgument: fewer than 2 hosts; kFailedPrecondition: the fabric does not state all capacities.
absl::StatusOr<double> SlowestRingEdgeGbps(const Fabric& fabric, absl::Span<const HostId> hosts, const AllGatherModel& model);

// Normalised bandwidth of one AllGather of `bytes` (the whole result) a rank, 0..100: bus bandwidth over that of the NICs alone, latency
// included. `ranks` = hosts x GPUs; a ring step moves bytes / ranks per rank.
double NormalisedBandwidth(double slowest_edge_gbps, double nic_gbps, int hosts, int ranks, double bytes, absl::Duration step_latency);

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_SIM_FLUID_H_
