// The commands of `knit`, one function each. They print to their output and return the exit code (connection.h).
#ifndef CLOSEKNIT_CLIENT_COMMANDS_H_
#define CLOSEKNIT_CLIENT_COMMANDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/connection.h"
#include "client/output.h"
#include "client/submit_flags.h"

namespace closeknit {

struct Session {
  Connection* connection = nullptr;
  Output output;
};

// -- submit, run

struct SubmitOptions {
  FlagValues flags;
  std::vector<std::string> command;  // a program with arguments, an sbatch script with arguments, or a YAML job file
  std::string wrap;                  // --wrap: a shell command line
  std::string request_id;            // empty: one is made
  std::string user;                  // empty: the login name
  bool parsable = false;
};
// The job that the options describe; files are read here. Warnings (ignored #SBATCH lines) go to `warnings`.
absl::StatusOr<v1::SubmitJobRequest> BuildSubmitRequest(const SubmitOptions& options, std::vector<std::string>* warnings);

int Submit(Session& session, const SubmitOptions& options);
// Submits, shows what it waits for, follows the logs, and exits as the job does. Ctrl-C cancels the job and waits for its end; a second
// one leaves at once.
int Run(Session& session, const SubmitOptions& options);

// -- jobs

struct QueueOptions {
  std::string user, name, partition, states, nodes;
  std::vector<std::string> jobs;
};
int Queue(Session& session, const QueueOptions& options);
int ShowJob(Session& session, const std::string& job);
int Cancel(Session& session, const std::vector<std::string>& jobs);

struct LogsOptions {
  std::string job;
  std::vector<uint32_t> ranks;
  uint32_t attempt = 0;
  uint32_t tail_lines = 0;
  bool follow = false;
  bool prefix = false;  // "rank 3: " before every line
};
int Logs(Session& session, const LogsOptions& options);

// -- nodes

struct NodesOptions {
  std::string states, nodes, domain;
  bool each = false;  // one line a node instead of one a state
};
int Nodes(Session& session, const NodesOptions& options);
int ShowNode(Session& session, const std::string& node);
int Drain(Session& session, const std::vector<std::string>& nodes, const std::string& reason);
int Resume(Session& session, const std::vector<std::string>& nodes);

// -- placement and topology

struct PlanOptions {
  FlagValues flags;      // those of `knit submit` that placement knows
  std::string evaluate;  // hosts in slot order
};
// Asks the daemon. Exit code 3: infeasible.
int Plan(Session& session, const PlanOptions& options);
// Replaces this process by `knit-plan` with these arguments; returns only if that fails.
int ExecPlan(const Output& output, const std::vector<std::string>& arguments);

int TopologyApply(Session& session, const std::string& file, bool dry_run);
int TopologyShow(Session& session, bool description);

// -- shared by the above

// The login name of the effective user, or its number.
std::string CallerName();
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t max_bytes);
// Comma-separated state names as printed ("running,pending"; "all").
absl::StatusOr<std::vector<v1::JobState>> ParseJobStates(const std::string& text);
absl::StatusOr<std::vector<v1::NodeState>> ParseNodeStates(const std::string& text);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLIENT_COMMANDS_H_
