// An InfiniBand subnet as ibnetdiscover prints it: switches and channel adapters with their links.
#ifndef CLOSEKNIT_CLUSTER_MODEL_READERS_IB_SUBNET_H_
#define CLOSEKNIT_CLUSTER_MODEL_READERS_IB_SUBNET_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cluster_model/readers/source.h"

namespace closeknit {

struct IbLink {
  int peer = 0;     // index into IbSubnet::nodes
  double gbps = 0;  // 0: not stated
};

struct IbNode {
  enum class Kind { kSwitch, kAdapter, kOther };  // kOther: routers, and the aggregation nodes inside switches
  Kind kind = Kind::kSwitch;
  std::string id = {};           // "S-506b4b0300123456"
  std::string description = {};  // "MF0;leaf01:MQM8700/U1", "h001 mlx5_0"
  Position at = {};              // of the header line
  std::vector<IbLink> links = {};
};

struct IbSubnet {
  std::vector<IbNode> nodes;
};

// Reports: lines that are none of ibnetdiscover's, a node twice, links to nodes that are not described, adapters linked to adapters.
IbSubnet ParseIbNetDiscover(absl::string_view contents, Diagnostics* diagnostics);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_READERS_IB_SUBNET_H_
