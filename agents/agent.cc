#include "agents/agent.h"

#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "agents/files.h"
#include "agents/gpu_watch.h"
#include "proto/base/log.h"
#include "proto/base/proto_time.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr uint32_t kProtocolVersion = 1;
constexpr absl::Duration kShortestHeartbeat = absl::Milliseconds(10);

absl::StatusOr<std::string> BootId() {
  ASSIGN_OR_RETURN(const std::string id, ReadWholeFile("/proc/sys/kernel/random/boot_id"));
  return std::string(absl::StripAsciiWhitespace(id));
}

absl::StatusOr<std::string> RandomId() {
  std::string bytes(16, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return SystemError("getrandom");
  return absl::BytesToHexString(bytes);
}

}  // namespace

Agent::Agent(AgentOptions options) : options_(std::move(options)), spool_(options_.spool) {}

absl::StatusOr<std::unique_ptr<Agent>> Agent::Open(AgentOptions options) {
  std::unique_ptr<Agent> agent(new Agent(std::move(options)));
  Agent* const self = agent.get();
  const Spool& spool = agent->spool_;
  RETURN_IF_ERROR(MakeDirectories(spool.path(), 0755));
  absl::StatusOr<OwnedFd> lock = LockFile(spool.lock());
  if (absl::IsUnavailable(lock.status())) {
    return absl::UnavailableError(absl::StrCat(spool.path(), " is used by another knit-agent; give each its own --spool"));
  }
  RETURN_IF_ERROR(lock.status());
  agent->lock_ = *std::move(lock);
  ASSIGN_OR_RETURN(agent->boot_id_, BootId());
  ASSIGN_OR_RETURN(agent->agent_id_, RandomId());
  ASSIGN_OR_RETURN(agent->fence_, Fence::Open(spool.fence()));
  const auto send = [self](v1::AgentMessage message) { self->link_->Send(std::move(message)); };
  agent->link_ =
      std::make_unique<SchedulerLink>(&agent->loop_, agent->options_.scheduler,
                                      SchedulerLink::Callbacks{
                                          .hello = [self] { return self->MakeHello(); },
                                          .on_message = [self](const v1::SchedulerMessage& message) { self->OnMessage(message); },
                                          .on_down =
                                              [self] {
                                                self->loop_.Cancel(self->heartbeat_);
                                                self->log_reads_->Forget();
                                              },
                                      });
  agent->log_reads_ = std::make_unique<LogReads>(spool, [self](v1::LogData data) {
    v1::AgentMessage message;
    *message.mutable_log_data() = std::move(data);
    self->loop_.Post([self, message = std::move(message)] { self->link_->Send(message); });
  });
  agent->slots_ = std::make_unique<Slots>(
      &agent->loop_, spool, agent->options_.slots, &*agent->fence_,
      Slots::Callbacks{.report = send, .slot_lives = [self](const v1::SlotId& id, bool live) { self->log_reads_->SetLive(id, live); }});
  RETURN_IF_ERROR(agent->slots_->Adopt());
  return agent;
}

Agent::~Agent() {
  loop_.Cancel(heartbeat_);
  link_.reset();
}

void Agent::Run() {
  if (options_.simulated_gpus.has_value()) {
    OnGpus(SimulatedGpus(*options_.simulated_gpus), absl::OkStatus());
  } else {
    // The thread outlives the agent's last moments: see WatchGpus. knit-agent's end is the process's.
    WatchGpus(options_.nvml, options_.gpu_period, [this](std::vector<v1::Gpu> gpus, const absl::Status& why) {
      loop_.Post([this, gpus = std::move(gpus), why] { OnGpus(gpus, why); });
    });
  }
  loop_.Run();
}

v1::Hello Agent::MakeHello() const {
  v1::Hello hello;
  hello.set_protocol_version(kProtocolVersion);
  hello.set_node(options_.slots.node);
  hello.set_address(options_.address);
  hello.set_agent_version(CLOSEKNIT_VERSION);
  hello.set_boot_id(boot_id_);
  hello.set_agent_id(agent_id_);
  hello.mutable_gpus()->Assign(gpus_.begin(), gpus_.end());
  hello.set_highest_term(fence_->term());
  for (v1::SlotStatus& slot : slots_->Inventory()) *hello.add_slots() = std::move(slot);
  return hello;
}

void Agent::OnMessage(const v1::SchedulerMessage& message) {
  switch (message.payload_case()) {
    case v1::SchedulerMessage::kWelcome:
      return OnWelcome(message.welcome());
    case v1::SchedulerMessage::kPrepare:
      return slots_->Prepare(message.prepare());
    case v1::SchedulerMessage::kStart:
      return slots_->Start(message.start());
    case v1::SchedulerMessage::kStop:
      return slots_->Stop(message.stop());
    case v1::SchedulerMessage::kRelease:
      return slots_->Release(message.release());
    case v1::SchedulerMessage::kReadLog:
      return log_reads_->Read(message.read_log());
    case v1::SchedulerMessage::PAYLOAD_NOT_SET:
      return Log(LogLevel::kWarning, "a message of an unknown kind; is the scheduler newer than this agent?", {});
  }
}

void Agent::OnWelcome(const v1::Welcome& welcome) {
  if (welcome.term() < fence_->term()) {
    return link_->Drop(absl::StrCat("its term ", welcome.term(), " is over; this host has served term ", fence_->term()));
  }
  if (const absl::Status raised = fence_->RaiseTerm(welcome.term()); !raised.ok()) {
    // Commands will be refused with the same reason, which the scheduler then knows.
    Log(LogLevel::kError, "the term is not on disk", {{"error", raised.ToString()}});
  }
  heartbeat_interval_ = std::max(FromProtoDuration(welcome.heartbeat_interval()), kShortestHeartbeat);
  Log(LogLevel::kInfo, "connected", {{"scheduler", options_.scheduler}, {"term", absl::StrCat(welcome.term())}});
  ReportHost();
  loop_.Cancel(heartbeat_);
  heartbeat_ = loop_.After(heartbeat_interval_, [this] { Beat(); });
}

void Agent::Beat() {
  v1::AgentMessage message;
  message.mutable_heartbeat();
  link_->Send(std::move(message));
  heartbeat_ = loop_.After(heartbeat_interval_, [this] { Beat(); });
}

void Agent::OnGpus(std::vector<v1::Gpu> gpus, const absl::Status& why) {
  gpu_trouble_ = why.ok() ? "" : absl::StrCat("GpusUnreadable: ", why.message());
  Log(why.ok() ? LogLevel::kInfo : LogLevel::kError, "GPUs", {{"count", absl::StrCat(gpus.size())}, {"trouble", gpu_trouble_}});
  gpus_ = std::move(gpus);
  slots_->SetGpus(gpus_);
  if (!std::exchange(started_, true)) return link_->Start();
  if (link_->welcomed()) ReportHost();
}

void Agent::ReportHost() {
  v1::AgentMessage message;
  message.mutable_host()->mutable_gpus()->Assign(gpus_.begin(), gpus_.end());
  if (!gpu_trouble_.empty()) message.mutable_host()->add_conditions(gpu_trouble_);
  link_->Send(std::move(message));
}

}  // namespace closeknit
