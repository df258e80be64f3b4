// One function a format: a description, or errors in `diagnostics` (what is returned then is of no use). `contents` passed CheckSource.
#ifndef CLOSEKNIT_CLUSTER_MODEL_READERS_FORMATS_H_
#define CLOSEKNIT_CLUSTER_MODEL_READERS_FORMATS_H_

#include "absl/strings/string_view.h"
#include "cluster_model/fabric.h"
#include "cluster_model/readers/source.h"

namespace closeknit {

FabricDescription ReadCloseknitYaml(absl::string_view contents, Diagnostics* diagnostics);
FabricDescription ReadSlurmConf(absl::string_view contents, Diagnostics* diagnostics);
FabricDescription ReadSlurmYaml(absl::string_view contents, Diagnostics* diagnostics);
FabricDescription ReadIbNetDiscover(absl::string_view contents, Diagnostics* diagnostics);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_READERS_FORMATS_H_
