// What a rank finds in its environment: torchrun's contract, the GPUs it may use, where its gang is. docs/agents.md has the table.
//
// Pure: everything comes from the work order and START. Three layers, the later wins: the host's and site's variables with defaults of
// ours that a job may well want to change; the job's own; the facts of the gang, which nobody may change.
#ifndef CLOSEKNIT_AGENTS_RANK_ENVIRONMENT_H_
#define CLOSEKNIT_AGENTS_RANK_ENVIRONMENT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agents/gang_hosts.h"
#include "closeknit/v1/agent.pb.h"
#include "closeknit/v1/shim.pb.h"

namespace closeknit {

using Environment = std::map<std::string, std::string>;

// Longer node lists are left out of the environment, as the kernel takes no string of more than 128 KiB; the host file has them.
inline constexpr size_t kMaxNodeListBytes = 100'000;

// Names of files in the slot's spool directory that the environment points to.
inline constexpr char kHostFileName[] = "hostfile";
inline constexpr char kPlacementFileName[] = "placement.json";

// Processes that a slot starts: its ranks, or one that starts them itself (ENTRY_MODE_PER_HOST).
uint32_t ProcessesOf(const v1::PrepareSlot& prepare);

// Where the rank is asked to write why it failed (TORCHELASTIC_ERROR_FILE).
std::string ErrorFile(const v1::ShimOrder& order, uint32_t local_rank);

// The environment before START is known: what the command is looked up with.
Environment JobEnvironment(const v1::ShimOrder& order);

// Of the slot's process `local_rank` (below ProcessesOf). `hosts` is GangHosts(start.gang()).
Environment RankEnvironment(const v1::ShimOrder& order, const v1::StartSlot& start, const std::vector<GangHost>& hosts,
                            uint32_t local_rank);

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_RANK_ENVIRONMENT_H_
