// A slot on the host's disk. docs/agents.md describes the files byte by byte.
//
//   SPOOL/slots/4711.1/order      the work order (ShimOrder), written by the agent before the supervisor starts
//                     /status     the slot's state (ShimReply), written by knit-shim before it is reported to anyone
//                     /lock       locked by knit-shim while it lives
//                     /socket     where knit-shim answers
//                     /cgroup     path of the slot's control group, if it has one
//                     /shim.log   what knit-shim itself has to say
//                     /hostfile, /placement.json, /script, /error-N.json   for the ranks
//   SPOOL/logs/4711.1/            the ranks' logs, which outlive the slot
//   SPOOL/released/               slots that are forgotten, until their supervisor has gone
#ifndef CLOSEKNIT_AGENTS_SLOT_DIRECTORY_H_
#define CLOSEKNIT_AGENTS_SLOT_DIRECTORY_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "closeknit/v1/agent.pb.h"

namespace closeknit {

// "4711.1", and back.
std::string SlotName(const v1::SlotId& id);
std::optional<v1::SlotId> ParseSlotName(absl::string_view name);

// Paths in a slot's directory.
class SlotDirectory {
 public:
  explicit SlotDirectory(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  std::string order() const { return path_ + "/order"; }
  std::string status() const { return path_ + "/status"; }
  std::string lock() const { return path_ + "/lock"; }
  std::string cgroup() const { return path_ + "/cgroup"; }
  std::string shim_log() const { return path_ + "/shim.log"; }
  // What every process of the slot has in its environment and no other process of the host has.
  std::string mark() const;

 private:
  std::string path_;
};

// Paths in an agent's spool directory.
class Spool {
 public:
  explicit Spool(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  std::string slots() const { return path_ + "/slots"; }
  std::string logs() const { return path_ + "/logs"; }
  std::string released() const { return path_ + "/released"; }
  std::string lock() const { return path_ + "/lock"; }
  std::string fence() const { return path_ + "/fence"; }
  SlotDirectory slot(const v1::SlotId& id) const { return SlotDirectory(slots() + "/" + SlotName(id)); }
  std::string logs_of(const v1::SlotId& id) const { return logs() + "/" + SlotName(id); }

 private:
  std::string path_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_SLOT_DIRECTORY_H_
