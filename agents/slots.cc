// The scheduler's commands.
#include "agents/slots.h"

#include <sys/random.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/files.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr size_t kCookieBytes = 16;

std::string RandomCookie() {
  std::string cookie(kCookieBytes, '\0');
  // Up to 256 bytes are given at once or not at all.
  if (getrandom(cookie.data(), cookie.size(), 0) != static_cast<ssize_t>(cookie.size())) cookie.clear();
  return cookie;
}

bool Uses(const v1::SlotStatus& status, uint32_t gpu) {
  return std::find(status.gpus().begin(), status.gpus().end(), gpu) != status.gpus().end();
}

}  // namespace

Slots::Slot::Slot(SlotDirectory at, const v1::ShimOrder& order) : directory(std::move(at)), cookie(order.cookie()) {
  *status.mutable_id() = order.prepare().id();
  status.set_state(v1::SLOT_STATE_PREPARING);
  *status.mutable_gpus() = order.prepare().gpus();
}

Slots::Slots(EventLoop* loop, Spool spool, SlotsConfig config, Fence* fence, Callbacks callbacks)
    : loop_(loop),
      spool_(std::move(spool)),
      config_(std::move(config)),
      fence_(fence),
      callbacks_(std::move(callbacks)),
      released_(loop, spool_) {
  // Shims that end are no zombies; waitpid then only tells whether one still runs.
  signal(SIGCHLD, SIG_IGN);
}

Slots::~Slots() {
  for (auto& [key, slot] : slots_) loop_->Cancel(slot->timer);
}

std::vector<v1::SlotStatus> Slots::Inventory() const {
  std::vector<v1::SlotStatus> inventory;
  for (const auto& [key, slot] : slots_) inventory.push_back(slot->status);
  return inventory;
}

Slots::Slot* Slots::Find(const v1::SlotId& id) {
  const auto found = slots_.find({id.job_id(), id.attempt()});
  return found == slots_.end() ? nullptr : found->second.get();
}

void Slots::Report(const Slot& slot) {
  v1::AgentMessage message;
  *message.mutable_slot() = slot.status;
  callbacks_.report(std::move(message));
}

void Slots::Reject(const v1::SlotId& id, const Refusal& refusal) {
  Log(LogLevel::kWarning, "refused",
      {{"slot", SlotName(id)},
       {"reason", refusal.reason_code},
       {"host_fault", refusal.host_fault ? "yes" : "no"},
       {"why", refusal.message}});
  v1::AgentMessage message;
  *message.mutable_rejected() = ToRejected(id, refusal);
  callbacks_.report(std::move(message));
}

bool Slots::AcceptTerm(const v1::SlotId& id, uint64_t term) {
  if (term < fence_->term()) {
    Reject(id, {"STALE_TERM", absl::StrCat("term ", term, " is over; this host has served term ", fence_->term()), false});
    return false;
  }
  const absl::Status raised = fence_->RaiseTerm(term);
  if (raised.ok()) return true;
  Reject(id, {"SPOOL_UNWRITABLE", std::string(raised.message()), true});
  return false;
}

void Slots::Prepare(const v1::PrepareSlot& prepare) {
  const v1::SlotId& id = prepare.id();
  if (!AcceptTerm(id, prepare.term())) return;
  if (const Slot* slot = Find(id); slot != nullptr) return Report(*slot);
  const uint32_t highest = fence_->attempt(id.job_id());
  if (id.attempt() < highest || fence_->started(id)) {
    return Reject(id, {"STALE_ATTEMPT", absl::StrCat("attempt ", highest, " of job ", id.job_id(), " was here already"), true});
  }
  if (const auto conflict = Conflict(prepare); conflict.has_value()) return Reject(id, *conflict);
  if (const auto fault = CheckGpus(prepare); fault.has_value()) return Reject(id, *fault);
  const v1::ShimOrder order = OrderOf(prepare);
  if (const absl::Status created = Create(order); !created.ok()) {
    // Nothing is left of it. If even that fails, the directory has no order: the next agent removes it.
    const absl::Status removed = RemoveTree(spool_.slot(id).path());
    if (!removed.ok()) Log(LogLevel::kWarning, "files of a slot stay", {{"error", removed.ToString()}});
    return Reject(id, {"SPOOL_UNWRITABLE", std::string(created.message()), true});
  }
  auto slot = std::make_unique<Slot>(spool_.slot(id), order);
  Slot* const there = slot.get();
  slots_[{id.job_id(), id.attempt()}] = std::move(slot);
  if (const absl::Status spawned = Spawn(there); !spawned.ok()) {
    Forget(id);
    return Reject(id, {"SUPERVISOR_FAILED", std::string(spawned.message()), true});
  }
  callbacks_.slot_lives(id, true);
  ConnectLater(id);
}

std::optional<Refusal> Slots::Conflict(const v1::PrepareSlot& prepare) const {
  for (const auto& [key, slot] : slots_) {
    if (slot->status.state() == v1::SLOT_STATE_ENDED) continue;
    if (key.first == prepare.id().job_id()) {
      return Refusal{"OTHER_ATTEMPT_RUNS", absl::StrCat("attempt ", key.second, " of job ", key.first, " is still here"), true};
    }
    for (const uint32_t gpu : prepare.gpus()) {
      if (Uses(slot->status, gpu)) return Refusal{"GPU_BUSY", absl::StrCat("GPU ", gpu, " is used by job ", key.first), true};
    }
  }
  return std::nullopt;
}

std::optional<Refusal> Slots::CheckGpus(const v1::PrepareSlot& prepare) const {
  for (const uint32_t gpu : prepare.gpus()) {
    const bool there = std::any_of(gpus_.begin(), gpus_.end(), [&](const v1::Gpu& known) { return known.index() == gpu; });
    if (!there) return Refusal{"GPU_MISSING", absl::StrCat("GPU ", gpu, " is not among the ", gpus_.size(), " GPUs of this host"), true};
  }
  return std::nullopt;
}

// The slot on disk: its order, then its attempt in the fence, before there is a process.
absl::Status Slots::Create(const v1::ShimOrder& order) {
  const SlotDirectory directory = spool_.slot(order.prepare().id());
  RETURN_IF_ERROR(RemoveTree(directory.path()));  // of a PREPARE that an earlier agent had not finished
  RETURN_IF_ERROR(MakeDirectories(directory.path(), 0700));
  RETURN_IF_ERROR(WriteDurably(directory.order(), order));
  return fence_->RaiseAttempt(order.prepare().id());
}

v1::ShimOrder Slots::OrderOf(const v1::PrepareSlot& prepare) const {
  v1::ShimOrder order;
  *order.mutable_prepare() = prepare;
  order.set_node(config_.node);
  order.set_spool_directory(spool_.slot(prepare.id()).path());
  order.set_log_directory(spool_.logs_of(prepare.id()));
  order.set_log_max_bytes(config_.log_max_bytes);
  order.set_log_max_files(config_.log_max_files);
  order.set_host_gpus(static_cast<uint32_t>(gpus_.size()));
  for (const uint32_t gpu : prepare.gpus()) {
    for (const v1::Gpu& known : gpus_) {
      if (known.index() == gpu && !known.uuid().empty()) order.add_gpu_uuids(known.uuid());
    }
  }
  order.set_cookie(RandomCookie());
  order.mutable_base_environment()->insert(config_.base_environment.begin(), config_.base_environment.end());
  order.set_slurm_names(config_.slurm_names);
  order.set_openmpi_names(config_.openmpi_names);
  return order;
}

void Slots::Start(const v1::StartSlot& start) {
  const v1::SlotId& id = start.id();
  if (!AcceptTerm(id, start.term())) return;
  const Slot* const slot = Find(id);
  if (slot == nullptr) return Reject(id, {"NO_SUCH_SLOT", "nothing is prepared", true});
  if (slot->status.state() != v1::SLOT_STATE_PREPARED) return Report(*slot);
  if (const absl::Status marked = fence_->MarkStarted(id); !marked.ok()) {
    // Not started: the scheduler gives the command again, or another host.
    Log(LogLevel::kError, "START is not obeyed", {{"slot", SlotName(id)}, {"error", marked.ToString()}});
    return Report(*slot);
  }
  v1::ShimRequest request;
  *request.mutable_start() = start;
  Tell(id, std::move(request));
}

void Slots::Stop(const v1::StopSlot& stop) {
  const v1::SlotId& id = stop.id();
  if (!AcceptTerm(id, stop.term())) return;
  const Slot* const slot = Find(id);
  if (slot == nullptr) return Reject(id, {"NO_SUCH_SLOT", "nothing to stop", true});
  if (slot->status.state() == v1::SLOT_STATE_ENDED) return Report(*slot);
  v1::ShimRequest request;
  *request.mutable_stop() = stop;
  Tell(id, std::move(request));
}

void Slots::Release(const v1::ReleaseSlot& release) {
  const v1::SlotId& id = release.id();
  if (release.term() < fence_->term()) return;
  const Slot* const slot = Find(id);
  if (slot == nullptr) return;  // a repeated command
  if (slot->status.state() == v1::SLOT_STATE_ENDED) return Forget(id);
  Log(LogLevel::kError, "told to release a slot that has not ended", {{"slot", SlotName(id)}});
}

void Slots::Forget(const v1::SlotId& id) {
  const auto found = slots_.find({id.job_id(), id.attempt()});
  loop_->Cancel(found->second->timer);
  const absl::Status added = released_.Add(found->second->directory);
  // Then a later agent finds it again, ended, and the scheduler tells it again to release it.
  if (!added.ok()) Log(LogLevel::kWarning, "a released slot stays on disk", {{"slot", SlotName(id)}, {"error", added.ToString()}});
  slots_.erase(found);
  callbacks_.slot_lives(id, false);
}

}  // namespace closeknit
