#include "client/connection.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/errors.h"

namespace closeknit {
namespace {

constexpr int kTries = 5;
constexpr absl::Duration kFirstPause = absl::Milliseconds(100);  // doubles: 1.5 s in all
constexpr int kMaxMessageBytes = 256 << 20;                      // a list of all nodes of a large estate

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  google::rpc::Status details;
  if (!status.error_details().empty() && details.ParseFromString(status.error_details())) return FromRpcStatus(details);
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kOk;
    case absl::StatusCode::kInvalidArgument:
      return kBadInput;
    case absl::StatusCode::kFailedPrecondition:
      return kInfeasible;
    case absl::StatusCode::kNotFound:
      return kNotFound;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kUnreachable;
    default:
      return kFailed;
  }
}

Connection::Connection(std::string target, absl::Duration timeout) : target_(std::move(target)), timeout_(timeout) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 10'000);  // what a handshake may take, on a busy host
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  channel_ = grpc::CreateCustomChannel(target_, grpc::InsecureChannelCredentials(), arguments);
  jobs_ = v1::JobService::NewStub(channel_);
  nodes_ = v1::NodeService::NewStub(channel_);
  topology_ = v1::TopologyService::NewStub(channel_);
  placement_ = v1::PlacementService::NewStub(channel_);
  logs_ = v1::LogService::NewStub(channel_);
}

bool Connection::WaitToRetry(int attempt, absl::Time deadline) {
  const absl::Duration pause = kFirstPause * (1 << std::min(attempt, 10));
  if (attempt + 1 >= kTries || absl::Now() + pause >= deadline) return false;
  absl::SleepFor(pause);
  return true;
}

absl::Status Connection::Explained(const absl::Status& status) const {
  if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return status;
  return absl::Status(status.code(), absl::StrCat("the scheduler at ", target_, " does not answer (", status.message(),
                                                  "); is knitd running there? --scheduler or KNIT_SCHEDULER names another one"));
}

}  // namespace closeknit
