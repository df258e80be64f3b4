// A host as the core holds it: its agent's stream, its health, and what it holds of which attempt.
#ifndef CLOSEKNIT_SCHEDULER_CORE_NODE_H_
#define CLOSEKNIT_SCHEDULER_CORE_NODE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "closeknit/v1/agent.pb.h"
#include "closeknit/v1/store.pb.h"
#include "closeknit/v1/types.pb.h"
#include "cluster_model/ids.h"
#include "scheduler/core/events.h"

namespace closeknit {

// What a host holds of one attempt. Freed by its agent's word alone: ended, rejected, or missing in an inventory.
struct Part {
  static constexpr int kLeftover = -1;
  JobId job = 0;
  AttemptNumber attempt = 0;
  int slot = kLeftover;  // of the job's live attempt; kLeftover: the attempt goes on without it, or is over
  GpuSet gpus;
  absl::Time since = absl::InfinitePast();
  bool in_view = false;  // allocated in the view. Not where the host is out of the fabric, or a stray slot's GPUs have another owner
};

struct Node {
  std::string name;
  std::optional<HostId> host;  // nullopt: the fabric no longer has it; it stays while it holds parts
  SessionId session = 0;       // 0: no agent is connected
  v1::NodeRecord record;
  std::string agent_version;
  std::vector<v1::Gpu> gpus;            // as reported
  std::vector<std::string> conditions;  // as reported
  std::string down_reason = "no agent has connected yet";
  absl::Time down_since = absl::InfinitePast();
  absl::Time last_seen = absl::InfinitePast();

  // After failed PREPAREs: no new work before `backoff_until`.
  absl::Time backoff_until = absl::InfiniteFuture();  // InfiniteFuture: none (a timer's value)
  int prepare_failures = 0;                           // in a row
  std::string prepare_failure;                        // the last one's words, until a PREPARE succeeds

  std::vector<Part> parts;
  std::shared_ptr<const v1::Node> published;
  bool changed = false;

  bool connected() const { return session != 0; }
  bool resting() const { return backoff_until != absl::InfiniteFuture(); }
  bool drained() const { return record.drained_by_user(); }

  Part* FindPart(JobId job, AttemptNumber attempt) {
    for (Part& part : parts) {
      if (part.job == job && part.attempt == attempt) return &part;
    }
    return nullptr;
  }
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_CORE_NODE_H_
