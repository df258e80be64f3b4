// What can happen to the scheduler's core, and what the core wants done about it.
//
// The shell turns calls, agent messages and the clock into events; it carries effects out in the order: commit `writes` in one synced
// batch, then, and only if that succeeded, everything else.
#ifndef CLOSEKNIT_SCHEDULER_CORE_EVENTS_H_
#define CLOSEKNIT_SCHEDULER_CORE_EVENTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "closeknit/v1/agent.pb.h"
#include "closeknit/v1/jobs.pb.h"
#include "closeknit/v1/nodes.pb.h"
#include "closeknit/v1/topology.pb.h"
#include "cluster_model/cluster_view.h"
#include "cluster_model/record.h"

namespace closeknit {

// Chosen by the shell; ties a reply to its call. 0: nobody waits.
using CallId = uint64_t;
// Chosen by the shell; one agent's stream. Never reused within a run of the daemon.
using SessionId = uint64_t;

// ---- Events ----

struct SubmitJob {
  CallId call = 0;
  v1::SubmitJobRequest request;  // request.user is set
};
struct CancelJobs {
  CallId call = 0;
  v1::CancelJobRequest request;
};
struct DrainNodes {
  CallId call = 0;
  v1::DrainNodesRequest request;
};
struct ResumeNodes {
  CallId call = 0;
  v1::ResumeNodesRequest request;
};
// The shell has read and checked the description (a pure function of the request).
struct ApplyTopology {
  CallId call = 0;
  v1::ApplyTopologyRequest request;
  std::shared_ptr<const Fabric> fabric;
};
// A copy of the present view, for plans; changes nothing.
struct TakeSnapshot {
  CallId call = 0;
};
// An agent's stream has begun with this Hello.
struct AgentConnected {
  SessionId session = 0;
  v1::Hello hello;
};
// Any later message of that stream except Heartbeat and LogData, which the shell keeps to itself.
struct AgentReported {
  SessionId session = 0;
  v1::AgentMessage message;
};
// The stream has ended, or was silent for longer than the shell allows.
struct AgentDisconnected {
  SessionId session = 0;
  std::string why;
};

using Event = std::variant<SubmitJob, CancelJobs, DrainNodes, ResumeNodes, ApplyTopology, TakeSnapshot, AgentConnected, AgentReported,
                           AgentDisconnected>;

// ---- Effects ----

using ReplyMessage = std::variant<v1::SubmitJobResponse, v1::CancelJobResponse, v1::DrainNodesResponse, v1::ResumeNodesResponse,
                                  v1::ApplyTopologyResponse, std::shared_ptr<const ClusterView>>;
struct Reply {
  CallId call = 0;
  absl::StatusOr<ReplyMessage> result;
};

struct AgentCommand {
  SessionId session = 0;
  v1::SchedulerMessage message;
};

// End an agent's stream with this error (unknown host, replaced by a newer stream).
struct CloseSession {
  SessionId session = 0;
  absl::Status status;
};

// What happened in a form for metrics and the log; names are fixed, fields few.
struct Notice {
  enum class Kind { kJobSubmitted, kJobPlaced, kGangStarted, kJobEnded, kPrepareFailed, kRestart, kNodeState, kRefusedReport };
  Kind kind = Kind::kJobSubmitted;
  JobId job = 0;
  AttemptNumber attempt = 0;
  std::string node;
  std::string detail;
  absl::Duration elapsed = absl::ZeroDuration();  // queue wait, prepare time, run time: by kind
};

struct Effects {
  std::vector<RecordWrite> writes;
  std::vector<Reply> replies;
  std::vector<AgentCommand> commands;  // to one session in this order
  std::vector<CloseSession> closes;
  std::vector<std::shared_ptr<const v1::Job>> jobs;    // new versions, for readers and watchers
  std::vector<std::shared_ptr<const v1::Node>> nodes;  // new versions
  std::vector<std::string> deleted_nodes;
  std::vector<JobId> purged_jobs;  // ended long ago, now forgotten
  std::vector<Notice> notices;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_CORE_EVENTS_H_
