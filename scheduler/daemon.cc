#include "scheduler/daemon.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <prometheus/exposer.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "scheduler/agent_sessions.h"
#include "scheduler/commit_loop.h"
#include "scheduler/job_service.h"
#include "scheduler/log_service.h"
#include "scheduler/metrics.h"
#include "scheduler/node_service.h"
#include "scheduler/placement_service.h"
#include "scheduler/publisher.h"
#include "scheduler/read_model.h"
#include "scheduler/topology_service.h"
#include "scheduler/worker_pool.h"

namespace closeknit {
namespace {

// Larger than any request that is accepted, so that too large ones are answered by name (a script of 5 MB), not by the transport.
constexpr int kMaxRequestBytes = (64 << 20) + (16 << 20);
constexpr int kWorkers = 2;
constexpr absl::Duration kShutdownGrace = absl::Seconds(1);

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::InvalidArgumentError(absl::StrCat("--topology: cannot open ", path, ": ", std::strerror(errno)));
  std::ostringstream contents;
  contents << file.rdbuf();
  return contents.str();
}

absl::Status WritePortFile(const std::string& path, int port) {
  if (path.empty()) return absl::OkStatus();
  const std::string unfinished = absl::StrCat(path, ".tmp");
  std::error_code error;
  {
    std::ofstream file(unfinished, std::ios::trunc);
    file << port << "\n";
    if (!file.flush()) return absl::UnavailableError(absl::StrCat("--port-file: cannot write ", path));
  }
  std::filesystem::rename(unfinished, path, error);
  if (error) return absl::UnavailableError(absl::StrCat("--port-file: cannot write ", path, ": ", error.message()));
  return absl::OkStatus();
}

class RunningDaemon : public Daemon {
 public:
  RunningDaemon(const DaemonOptions& options, std::unique_ptr<Store> store)
      : options_(options),
        store_(std::move(store)),
        publisher_(&model_, &metrics_),
        loop_(store_.get(), options.core, &publisher_),
        sessions_(&loop_, options.agent_timeout),
        job_service_(&loop_, &model_),
        node_service_(&loop_, &model_),
        topology_service_(&loop_, &model_, &workers_),
        placement_service_(&loop_, &workers_),
        log_service_(&model_, &sessions_) {
    publisher_.SetSessions(&sessions_);
  }

  ~RunningDaemon() override {
    sessions_.Stop();
    if (server_ != nullptr) server_->Shutdown(absl::ToChronoTime(absl::Now() + kShutdownGrace));
    loop_.Stop();
  }

  int port() const override { return port_; }

  absl::Status Begin() {
    RETURN_IF_ERROR(loop_.Start());
    RETURN_IF_ERROR(ApplyTopologyFile());
    RETURN_IF_ERROR(ServeMetrics());
    RETURN_IF_ERROR(Listen());
    sessions_.Start();
    return WritePortFile(options_.port_file, port_);
  }

 private:
  absl::Status ApplyTopologyFile() {
    if (options_.topology_file.empty()) return absl::OkStatus();
    v1::ApplyTopologyRequest request;
    ASSIGN_OR_RETURN(*request.mutable_description(), ReadFile(options_.topology_file));
    request.set_file_name(options_.topology_file);
    request.set_user("knitd");
    Mutex mutex;
    CondVar answered;
    std::optional<absl::StatusOr<ReplyMessage>> answer;
    ApplyDescription(&loop_, std::move(request), [&](absl::StatusOr<ReplyMessage> reply) {
      MutexLock lock(&mutex);
      answer = std::move(reply);
      answered.Signal();
    });
    MutexLock lock(&mutex);
    while (!answer.has_value()) answered.Wait(&mutex);
    const absl::Status status = answer->status();
    if (!absl::IsFailedPrecondition(status)) return status;
    Log(LogLevel::kError, "the topology file is not applied, the stored fabric stays",
        {{"file", options_.topology_file}, {"why", std::string(status.message())}});
    return absl::OkStatus();
  }

  absl::Status ServeMetrics() {
    if (options_.metrics_address.empty()) return absl::OkStatus();
    try {
      exposer_ = std::make_unique<prometheus::Exposer>(options_.metrics_address, 1);
    } catch (const std::exception& error) {
      return absl::UnavailableError(absl::StrCat("--metrics: cannot listen on ", options_.metrics_address, ": ", error.what()));
    }
    exposer_->RegisterCollectable(metrics_.registry());
    return absl::OkStatus();
  }

  absl::Status Listen() {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    builder.AddListeningPort(options_.listen, grpc::InsecureServerCredentials(), &port_);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second daemon on the same port fails instead of taking half the calls
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
    builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
    builder.RegisterService(&job_service_);
    builder.RegisterService(&node_service_);
    builder.RegisterService(&topology_service_);
    builder.RegisterService(&placement_service_);
    builder.RegisterService(&log_service_);
    builder.RegisterService(&sessions_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0) return absl::UnavailableError(absl::StrCat("--listen: cannot listen on ", options_.listen));
    return absl::OkStatus();
  }

  const DaemonOptions options_;
  const std::unique_ptr<Store> store_;
  ReadModel model_;
  Metrics metrics_;
  Publisher publisher_;
  CommitLoop loop_;
  AgentSessions sessions_;
  WorkerPool workers_{kWorkers};
  JobService job_service_;
  NodeService node_service_;
  TopologyService topology_service_;
  PlacementService placement_service_;
  LogService log_service_;
  std::unique_ptr<prometheus::Exposer> exposer_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const DaemonOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Store> store, OpenRocksStore(options.data_directory));
  return Start(options, std::move(store));
}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const DaemonOptions& options, std::unique_ptr<Store> store) {
  auto daemon = std::make_unique<RunningDaemon>(options, std::move(store));
  RETURN_IF_ERROR(daemon->Begin());
  return std::unique_ptr<Daemon>(std::move(daemon));
}

}  // namespace closeknit
