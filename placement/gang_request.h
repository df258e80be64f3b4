// What a gang asks of placement, checked and in the fabric's own terms. docs/placement.md has the model.
#ifndef CLOSEKNIT_PLACEMENT_GANG_REQUEST_H_
#define CLOSEKNIT_PLACEMENT_GANG_REQUEST_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "cluster_model/fabric.h"
#include "cluster_model/ids.h"

namespace closeknit {

enum class Pattern { kRing, kChain, kAllToAll };
enum class ObjectiveKind { kTopFirst, kTime };

// One parallel dimension, innermost first.
struct Dimension {
  std::string name;
  int degree = 1;
  double bytes = 1;       // to the next neighbour, per step
  double wrap_bytes = 0;  // chain only: on the two edges that close it
  Pattern pattern = Pattern::kRing;
};

struct GangRequest {
  int slots = 1;                      // hosts
  int ranks_per_slot = 8;             // g
  int gpus_per_slot = 8;              // 0: no GPUs, the host is shared unless exclusive
  std::vector<Dimension> dimensions;  // degrees multiply to slots * ranks_per_slot; empty: one ring of all ranks, 1 byte an edge
  ObjectiveKind objective = ObjectiveKind::kTopFirst;

  std::optional<Tier> required_tier;
  absl::flat_hash_map<Tier, int> max_domains;
  absl::flat_hash_map<Tier, int> multiple_of;
  std::vector<HostId> exclude;                  // sorted
  std::optional<std::vector<HostId>> nodelist;  // sorted; nullopt: all
  std::vector<std::string> features;            // sorted
  std::string partition = "default";
  bool allow_degraded = false;
  int spares = 0;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_PLACEMENT_GANG_REQUEST_H_
