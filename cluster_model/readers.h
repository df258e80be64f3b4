// Readers of fabric descriptions. All errors read "file:line:column: what; what would be right" (kInvalidArgument).
#ifndef CLOSEKNIT_CLUSTER_MODEL_READERS_H_
#define CLOSEKNIT_CLUSTER_MODEL_READERS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster_model/fabric.h"

namespace closeknit {

enum class FabricFormat { kYaml, kSlurmConf, kSlurmYaml, kIbNetDiscover };

// Tells the format by the contents (never by the file's name).
FabricFormat DetectFabricFormat(absl::string_view contents);

// `file_name` is used in messages only. Contents are at most 64 MiB; a fabric at most 1,000,000 hosts.
absl::StatusOr<Fabric> ReadFabric(absl::string_view contents, absl::string_view file_name);
absl::StatusOr<Fabric> ReadFabric(absl::string_view contents, absl::string_view file_name, FabricFormat format);

// The difference that `knit topo apply` shows. Names in fabric order.
struct FabricDiff {
  std::vector<std::string> added, removed, moved;  // moved: below other domains, or with other GPUs, rails, features, partitions
};
FabricDiff CompareFabrics(const Fabric& before, const Fabric& after);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_READERS_H_
