// What a description says about hosts beside their place: GPUs, rails, links.
#ifndef CLOSEKNIT_CLUSTER_MODEL_READERS_HOST_SETTINGS_H_
#define CLOSEKNIT_CLUSTER_MODEL_READERS_HOST_SETTINGS_H_

#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "cluster_model/fabric.h"
#include "cluster_model/readers/source.h"

namespace closeknit {

inline constexpr int kMaxHostGpus = 64;
inline constexpr int kMaxHostRails = 64;

// "16x400": 16 links of 400 Gbit/s each. 1..65,536 links of up to 1,000,000 Gbit/s.
std::optional<Uplinks> ParseLinks(absl::string_view text);
// What ParseLinks takes, for messages.
inline constexpr absl::string_view kLinksForm = "COUNTxGBITS, e.g. 16x400 for 16 links of 400 Gbit/s";

// What a line of the file says about its hosts, in formats that have no words for it:
//   #closeknit: gpus=4 rails=4 nics=4x400 hosts=h[001-512]
// (a comment to Slurm and to InfiniBand's tools).
struct ForeignSettings {
  Host host;  // the default of every host: 8 GPUs, rails and NICs not stated
  // Names of the compute hosts; others (storage, login) are left out. nullopt: all are. Only where a format lists every host of a network.
  std::optional<absl::flat_hash_set<std::string>> hosts;
  Position hosts_at;
};
ForeignSettings ReadForeignSettings(absl::string_view contents, NameLists* names, Diagnostics* diagnostics);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_READERS_HOST_SETTINGS_H_
