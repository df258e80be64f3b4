// Switches as Slurm describes them (each with its child switches or its nodes, in any order) made into a fabric description.
#ifndef CLOSEKNIT_CLUSTER_MODEL_READERS_SWITCH_TREE_H_
#define CLOSEKNIT_CLUSTER_MODEL_READERS_SWITCH_TREE_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cluster_model/fabric.h"
#include "cluster_model/readers/host_settings.h"
#include "cluster_model/readers/source.h"

namespace closeknit {

struct SwitchEntry {
  std::string name;
  Position at;  // of the name
  std::vector<std::string> switches;
  Position switches_at;
  std::vector<std::string> nodes;
  Position nodes_at;
};

// Reports: a switch twice, an unknown child, a switch or node below two, or twice in a list (overlapping ranges), a cycle, an orphan, no
// node at all, too many tiers. What it returns then is of no use.
FabricDescription ToDescription(absl::Span<const SwitchEntry> switches, const ForeignSettings& settings, Diagnostics* diagnostics);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_READERS_SWITCH_TREE_H_
