// The gang as its ranks may read it: which host has which ranks, and in which domains of the fabric each host is. Pure.
#ifndef CLOSEKNIT_AGENTS_GANG_HOSTS_H_
#define CLOSEKNIT_AGENTS_GANG_HOSTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "closeknit/v1/agent.pb.h"

namespace closeknit {

struct GangHost {
  std::string name;
  std::vector<std::pair<std::string, std::string>> domains;  // (tier, domain) from tier 1 up
};

// All hosts in slot order. kInvalidArgument if the map contradicts itself (lists that cannot be read, counts that do not fit).
// Time: O(slots * tiers).
absl::StatusOr<std::vector<GangHost>> GangHosts(const v1::GangMap& map);

// One line a host in slot order, which mpirun takes as well:
//   h1 slots=8 # ranks=0-7 rack=r1 pod=p1
std::string HostFile(const std::vector<GangHost>& hosts, uint32_t ranks_per_node);

// The same for programs: {"job_id": 1, "attempt": 1, "ranks_per_node": 8, "hosts": [{"name": "h1", "ranks": [0, 7], "domains":
// {"rack": "r1"}}, ...]}; "ranks" is the first and the last.
std::string PlacementJson(const v1::SlotId& id, const std::vector<GangHost>& hosts, uint32_t ranks_per_node);

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_GANG_HOSTS_H_
