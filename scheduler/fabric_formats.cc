#include "scheduler/fabric_formats.h"

#include "absl/strings/str_cat.h"
#include "cluster_model/readers.h"
#include "proto/base/errors.h"

namespace closeknit {

absl::StatusOr<Fabric> ReadFabricAs(absl::string_view description, absl::string_view file_name, v1::TopologyFormat format) {
  switch (format) {
    case v1::TOPOLOGY_FORMAT_UNSPECIFIED:
      return ReadFabric(description, file_name);
    case v1::TOPOLOGY_FORMAT_YAML:
      return ReadFabric(description, file_name, FabricFormat::kYaml);
    case v1::TOPOLOGY_FORMAT_SLURM_CONF:
      return ReadFabric(description, file_name, FabricFormat::kSlurmConf);
    case v1::TOPOLOGY_FORMAT_SLURM_YAML:
      return ReadFabric(description, file_name, FabricFormat::kSlurmYaml);
    case v1::TOPOLOGY_FORMAT_IBNETDISCOVER:
      return ReadFabric(description, file_name, FabricFormat::kIbNetDiscover);
    default:
      return InvalidField("format", absl::StrCat("no format ", static_cast<int>(format), "; 0 (told by the contents) to 4"));
  }
}

}  // namespace closeknit
