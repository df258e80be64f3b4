// Fabric descriptions as calls and the store name their formats.
#ifndef CLOSEKNIT_SCHEDULER_FABRIC_FORMATS_H_
#define CLOSEKNIT_SCHEDULER_FABRIC_FORMATS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "closeknit/v1/topology.pb.h"
#include "cluster_model/fabric.h"

namespace closeknit {

// ReadFabric in the format named; unspecified: told by the contents. kInvalidArgument as ReadFabric, or for a format that is not known.
absl::StatusOr<Fabric> ReadFabricAs(absl::string_view description, absl::string_view file_name, v1::TopologyFormat format);

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_FABRIC_FORMATS_H_
