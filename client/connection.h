// Calls to the scheduler: deadlines, retries while it cannot be reached, errors with their google.rpc details.
#ifndef CLOSEKNIT_CLIENT_CONNECTION_H_
#define CLOSEKNIT_CLIENT_CONNECTION_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "closeknit/v1/jobs.grpc.pb.h"
#include "closeknit/v1/logs.grpc.pb.h"
#include "closeknit/v1/nodes.grpc.pb.h"
#include "closeknit/v1/placement.grpc.pb.h"
#include "closeknit/v1/topology.grpc.pb.h"

namespace closeknit {

// A gRPC status with the details that the server attached as payloads.
absl::Status FromGrpc(const grpc::Status& status);

// Exit codes of every command; docs/cli.md has the table.
enum ExitCode : int {
  kOk = 0,
  kFailed = 1,
  kBadInput = 2,
  kInfeasible = 3,
  kNotFound = 4,
  kUnreachable = 5,
  kTimedOut = 124,     // as timeout(1): `knit run` of a job that reached its time limit
  kInterrupted = 130,  // as a shell says of Ctrl-C
};
int ExitCodeOf(const absl::Status& status);

class Connection {
 public:
  // `target` is HOST:PORT or any gRPC name. Nothing is sent before the first call. `timeout` bounds each unary call with its retries.
  Connection(std::string target, absl::Duration timeout);

  const std::string& target() const { return target_; }
  v1::JobService::Stub& jobs() { return *jobs_; }
  v1::NodeService::Stub& nodes() { return *nodes_; }
  v1::TopologyService::Stub& topology() { return *topology_; }
  v1::PlacementService::Stub& placement() { return *placement_; }
  v1::LogService::Stub& logs() { return *logs_; }

  // One unary call. kUnavailable is tried again a few times (about 2 s), with growing pauses: all our calls may be repeated (SubmitJob by
  // its request id).
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request) {
    const absl::Time deadline = absl::Now() + timeout_;
    for (int attempt = 0;; ++attempt) {
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(deadline));
      Response response;
      const absl::Status status = FromGrpc((stub.*method)(&context, request, &response));
      if (status.ok()) return response;
      if (!absl::IsUnavailable(status) || !WaitToRetry(attempt, deadline)) return Explained(status);
    }
  }

  // The status with what a person can do about an unreachable scheduler.
  absl::Status Explained(const absl::Status& status) const;

 private:
  // Pauses before try `attempt` + 1; false when that would be too late.
  static bool WaitToRetry(int attempt, absl::Time deadline);

  const std::string target_;
  const absl::Duration timeout_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::NodeService::Stub> nodes_;
  std::unique_ptr<v1::TopologyService::Stub> topology_;
  std::unique_ptr<v1::PlacementService::Stub> placement_;
  std::unique_ptr<v1::LogService::Stub> logs_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_CLIENT_CONNECTION_H_
