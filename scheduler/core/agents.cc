// Agents: their streams, what they report, and what their inventories say against what is stored.
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/errors.h"
#include "proto/base/proto_time.h"
#include "scheduler/core/core_impl.h"
#include "scheduler/core/validate.h"

namespace closeknit {
namespace {

constexpr uint32_t kProtocolVersion = 1;

GpuSet ToGpuSet(const google::protobuf::RepeatedField<uint32_t>& indices) {
  GpuSet gpus;
  for (const uint32_t index : indices) {
    if (index < kMaxGpusPerNode) gpus.Add(static_cast<int>(index));
  }
  return gpus;
}

}  // namespace

void CoreImpl::Handle(const AgentConnected& event) {
  const v1::Hello& hello = event.hello;
  CHECK(!sessions_.contains(event.session)) << "session " << event.session << " is used twice";
  const auto refuse = [&](absl::Status status) { effects_.closes.push_back({event.session, std::move(status)}); };
  Node* const node = FindNode(hello.node());
  if (node == nullptr) {
    return refuse(NotFound("UNKNOWN_NODE", absl::StrCat("no host '", hello.node(), "' in the fabric: check --node, or knit topo apply")));
  }
  if (hello.protocol_version() != kProtocolVersion) {
    return refuse(
        Precondition("PROTOCOL_VERSION", absl::StrCat("node/", hello.node()),
                     absl::StrCat("the agent speaks protocol ", hello.protocol_version(), ", this scheduler ", kProtocolVersion)));
  }
  if (hello.highest_term() > meta_.term()) {
    return refuse(Precondition("STALE_TERM", absl::StrCat("node/", hello.node()),
                               absl::StrCat("the agent has served term ", hello.highest_term(), ", this scheduler's is ", meta_.term())));
  }
  Connect(event.session, *node, hello);
}

void CoreImpl::Handle(const AgentDisconnected& event) {
  const auto found = sessions_.find(event.session);
  if (found != sessions_.end()) Disconnect(*found->second, event.why);
}

void CoreImpl::Handle(const AgentReported& event) {
  const auto found = sessions_.find(event.session);
  if (found == sessions_.end()) return;  // of a stream that was closed
  Node& node = *found->second;
  node.last_seen = now_;
  switch (event.message.payload_case()) {
    case v1::AgentMessage::kSlot:
      return OnStatus(node, event.message.slot(), Source::kReport);
    case v1::AgentMessage::kRejected:
      return OnRejected(node, event.message.rejected());
    case v1::AgentMessage::kHost:
      node.conditions.assign(event.message.host().conditions().begin(), event.message.host().conditions().end());
      return SetHardware(node, event.message.host().gpus());
    case v1::AgentMessage::kHello:
      CloseStream(event.session, absl::InvalidArgumentError("a second Hello on one stream"));
      return Disconnect(node, "its agent sent a second Hello");
    default:
      return Refuse(node, 0, 0, "a message that the core does not know");
  }
}

void CoreImpl::Connect(SessionId session, Node& node, const v1::Hello& hello) {
  if (node.connected()) {
    CloseStream(node.session, absl::AlreadyExistsError(absl::StrCat("another agent of ", node.name, " has connected")));
    sessions_.erase(node.session);
  }
  node.session = session;
  sessions_[session] = &node;
  node.last_seen = now_;
  node.agent_version = hello.agent_version();
  if (node.record.boot_id() != hello.boot_id() || node.record.address() != hello.address()) {
    node.record.set_boot_id(hello.boot_id());
    node.record.set_address(hello.address());
    StoreNode(node);
  }
  SetHardware(node, hello.gpus());
  UpdateAvailability(node);
  NoteNode(node, "connected");
  v1::SchedulerMessage message;
  message.mutable_welcome()->set_term(meta_.term());
  *message.mutable_welcome()->mutable_heartbeat_interval() = ToProtoDuration(config_.heartbeat_interval);
  Send(node, std::move(message));
  Reconcile(node, hello);
}

void CoreImpl::Disconnect(Node& node, const std::string& why) {
  sessions_.erase(node.session);
  node.session = 0;
  node.down_reason = why.empty() ? "its agent has disconnected" : why;
  node.down_since = now_;
  UpdateAvailability(node);
  NoteNode(node, absl::StrCat("down: ", node.down_reason));
  // Nothing is freed and nothing is stopped: ranks run on. Gangs that are not started yet look for another host.
  for (const Part& part : node.parts) {
    if (part.slot == Part::kLeftover) continue;
    JobEntry& job = *FindJob(part.job);
    if (job.job->state() != v1::JOB_STATE_PREPARING) continue;
    const SlotPhase phase = job.gang->slots()[part.slot].phase;
    if (phase == SlotPhase::kAssigned || phase == SlotPhase::kPrepared) {
      if (phase == SlotPhase::kPrepared) job.gang->slot(part.slot).due = now_ + config_.prepare_timeout;
      FailSlot(job, part.slot, SlotPhase::kLost, node.down_reason);
      SetJobTimer(job, std::min(job.timer, job.gang->slots()[part.slot].due));
    }
  }
}

void CoreImpl::Reconcile(Node& node, const v1::Hello& hello) {
  const std::vector<Part> held = node.parts;  // handling changes node.parts
  absl::flat_hash_set<std::pair<JobId, AttemptNumber>> inventory;
  for (const v1::SlotStatus& status : hello.slots()) inventory.insert({status.id().job_id(), status.id().attempt()});
  for (const v1::SlotStatus& status : hello.slots()) OnStatus(node, status, Source::kInventory);
  for (const Part& part : held) {
    if (!inventory.contains({part.job, part.attempt})) OnMissing(node, part);
  }
}

void CoreImpl::OnStatus(Node& node, const v1::SlotStatus& status, Source source) {
  const JobId id = status.id().job_id();
  const AttemptNumber attempt = status.id().attempt();
  const Part* const part = node.FindPart(id, attempt);
  if (part == nullptr) return AdoptStray(node, status);
  if (part->slot == Part::kLeftover) {
    if (status.state() == v1::SLOT_STATE_ENDED) {
      SendRelease(node, id, attempt);
      FreeLeftover(node, id, attempt);
    } else if (source == Source::kInventory) {
      SendStop(node, id, attempt, "its gang goes on without this host");
    }
    return;
  }
  JobEntry& job = *FindJob(id);
  const int slot = part->slot;
  if (source == Source::kInventory && job.gang->slots()[slot].phase == SlotPhase::kLost) job.gang->SetPhase(slot, SlotPhase::kAssigned);
  OnSlotStatus(job, slot, status, source);
}

void CoreImpl::OnRejected(Node& node, const v1::SlotRejected& rejected) {
  const JobId id = rejected.id().job_id();
  const AttemptNumber attempt = rejected.id().attempt();
  if (rejected.reason_code() == "STALE_TERM") {
    CloseStream(node.session, Precondition("STALE_TERM", absl::StrCat("node/", node.name), "the agent serves a later scheduler"));
    return Disconnect(node, "its agent serves a later scheduler");
  }
  const Part* const part = node.FindPart(id, attempt);
  if (part == nullptr) return;  // the answer to a StopSlot that was sent again
  if (part->slot == Part::kLeftover) return FreeLeftover(node, id, attempt);
  OnRejected(*FindJob(id), part->slot, rejected);
}

// A slot that the host should have and has not.
void CoreImpl::OnMissing(Node& node, const Part& part) {
  const Part* const held = node.FindPart(part.job, part.attempt);
  if (held == nullptr) return;  // freed meanwhile
  if (held->slot == Part::kLeftover) return FreeLeftover(node, part.job, part.attempt);
  JobEntry& job = *FindJob(part.job);
  if (job.job->state() != v1::JOB_STATE_PREPARING) return OnSlotGone(job, held->slot, "came back without its part of the gang");
  Gang& gang = *job.gang;
  const SlotPhase phase = gang.slots()[held->slot].phase;
  if (phase == SlotPhase::kFailed || phase == SlotPhase::kRefused) return;  // marked in this step
  gang.SetPhase(held->slot, SlotPhase::kAssigned);
  gang.slot(held->slot).due = now_ + config_.prepare_timeout;
  SetJobTimer(job, std::min(job.timer, now_ + config_.prepare_timeout));
  SendPrepare(job, {held->slot});
}

// A slot that nobody here knows as live: of an attempt that was given up, or ended while the host was away.
void CoreImpl::AdoptStray(Node& node, const v1::SlotStatus& status) {
  const JobId id = status.id().job_id();
  const AttemptNumber attempt = status.id().attempt();
  if (status.state() == v1::SLOT_STATE_ENDED) return SendRelease(node, id, attempt);
  Refuse(node, id, attempt, "a slot of no live attempt: it is stopped");
  Part part = {.job = id, .attempt = attempt, .gpus = ToGpuSet(status.gpus())};
  JobEntry* const job = FindJob(id);
  Hold(node, part, job);
  if (job != nullptr && !HasEnded(*job->job)) LeavePart(*job, *node.FindPart(id, attempt), node);
  SendStop(node, id, attempt, "not part of a live attempt");
}

void CoreImpl::SendStop(const Node& node, JobId id, AttemptNumber attempt, const std::string& reason) {
  if (!node.connected()) return;
  const JobEntry* const job = FindJob(id);
  v1::SchedulerMessage message;
  v1::StopSlot& stop = *message.mutable_stop();
  stop.set_term(meta_.term());
  stop.mutable_id()->set_job_id(id);
  stop.mutable_id()->set_attempt(attempt);
  *stop.mutable_grace_period() = job != nullptr ? job->job->spec().grace_period() : ToProtoDuration(kDefaultGracePeriod);
  stop.set_reason(reason);
  Send(node, std::move(message));
}

void CoreImpl::SendRelease(const Node& node, JobId job, AttemptNumber attempt) {
  if (!node.connected()) return;
  v1::SchedulerMessage message;
  v1::ReleaseSlot& release = *message.mutable_release();
  release.set_term(meta_.term());
  release.mutable_id()->set_job_id(job);
  release.mutable_id()->set_attempt(attempt);
  Send(node, std::move(message));
}

void CoreImpl::Send(const Node& node, v1::SchedulerMessage message) { effects_.commands.push_back({node.session, std::move(message)}); }

void CoreImpl::CloseStream(SessionId session, absl::Status status) { effects_.closes.push_back({session, std::move(status)}); }

void CoreImpl::Refuse(const Node& node, JobId job, AttemptNumber attempt, const std::string& what) {
  effects_.notices.push_back({Notice::Kind::kRefusedReport, job, attempt, node.name, what, absl::ZeroDuration()});
}

}  // namespace closeknit
