#include "cluster_model/readers/formats.h"
namespace closeknit {
FabricDescription ReadIbNetDiscover(absl::string_view, Diagnostics* diagnostics) {
  diagnostics->Add({}, "ibnetdiscover output is not read by this version; describe the fabric in Closeknit's YAML (docs/topology.md)");
  return {};
}
}  // namespace closeknit
