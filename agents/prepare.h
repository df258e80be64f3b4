// PREPARE on the host: everything that would make a rank fail at its start is looked at before any rank of the gang starts.
#ifndef CLOSEKNIT_AGENTS_PREPARE_H_
#define CLOSEKNIT_AGENTS_PREPARE_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agents/command.h"
#include "agents/master_port.h"
#include "agents/rank_log.h"
#include "closeknit/v1/agent.pb.h"
#include "closeknit/v1/shim.pb.h"

namespace closeknit {

// What a prepared slot holds until it starts or is stopped.
struct PreparedSlot {
  Command command;
  std::vector<RankLog> logs;       // one a process
  std::optional<HeldPort> master;  // on the host of rank 0
};

// Why a slot is not prepared.
struct Refusal {
  std::string reason_code;  // of SlotRejected
  std::string message;
  bool host_fault = false;  // another host may do better
};

struct PrepareResult {
  std::optional<Refusal> refusal;
  PreparedSlot slot;  // if not refused
};

// Checks directory, command and rank 0's address, writes the script, opens the logs, and holds MASTER_PORT. May take seconds where the
// network is silent; knit-shim calls it, which nobody waits for but the gang.
PrepareResult Prepare(const v1::ShimOrder& order);

v1::SlotRejected ToRejected(const v1::SlotId& id, const Refusal& refusal);

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_PREPARE_H_
