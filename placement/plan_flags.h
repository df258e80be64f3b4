// The command line of knit-plan, and the cluster's state in a file.
#ifndef CLOSEKNIT_PLACEMENT_PLAN_FLAGS_H_
#define CLOSEKNIT_PLACEMENT_PLAN_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "closeknit/v1/placement.pb.h"
#include "cluster_model/cluster_view.h"

namespace closeknit {

struct PlanFlags {
  std::string topology;  // file
  std::string busy, state;
  uint32_t nodes = 0, gpus_per_node = 8, ranks_per_node = 0, spares = 0;
  std::string parallelism, bytes, require, evaluate, exclude, nodelist;
  std::vector<std::string> max_domains, multiple_of;  // "pod=2"
  std::string objective = "top-first", format = "text";
  bool allow_degraded = false;
};

// "h[1-4],h9", or one host (or list) a line in a file: "@file". kInvalidArgument names the flag.
absl::StatusOr<std::vector<std::string>> HostsOfFlag(const std::string& flag, const std::string& value);

// The request that the flags make; kInvalidArgument names the flag. `evaluate_hosts` is filled from --evaluate.
absl::StatusOr<v1::PlanRequest> ToPlanRequest(const PlanFlags& flags);

// Applies --busy or --state to the view. A state file has one host list a line, followed by what holds for it: busy, down, drained,
// reserved, gpus=N (so many GPUs allocated), rails_down=N; '#' begins a comment. Errors name file and line.
absl::Status ApplyState(const PlanFlags& flags, ClusterView* view);

absl::StatusOr<std::string> ReadWholeFile(const std::string& flag, const std::string& path);

}  // namespace closeknit

#endif  // CLOSEKNIT_PLACEMENT_PLAN_FLAGS_H_
