// The gang's MASTER_PORT, held from PREPARE to the slot's end so that nobody else gets it (docs/adr/0004-held-master-port.md).
#ifndef CLOSEKNIT_AGENTS_MASTER_PORT_H_
#define CLOSEKNIT_AGENTS_MASTER_PORT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/files.h"

namespace closeknit {

// A port of this host that the kernel gives to nobody else while `holder` is open, but that a server which sets SO_REUSEADDR can listen on.
struct HeldPort {
  uint16_t port = 0;
  OwnedFd holder;
};
absl::StatusOr<HeldPort> HoldPort();

// Whether rank 0 can listen at `address` here: it must be an address of this host, and for a gang of several hosts one that the others can
// mean: not "localhost", 127.0.0.1 or ::1. (Other loopback addresses are let through: clusters for tests live there.)
absl::Status CheckMasterIsHere(const std::string& address, uint32_t hosts);

// Whether rank 0's host can be reached from here: its name resolves, there is a route, and the host answers. A host that answers nothing at
// all within `patience` counts as reachable, as firewalls do that.
absl::Status CheckMasterReachable(const std::string& address, absl::Duration patience);

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_MASTER_PORT_H_
