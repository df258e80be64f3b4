#include "scheduler/core/testing/fake_agent.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/proto_time.h"

namespace closeknit {
namespace {

constexpr int kSigTerm = 15;

v1::AgentMessage Rejection(const v1::SlotId& id, const std::string& code, const std::string& message, bool host_fault) {
  v1::AgentMessage answer;
  v1::SlotRejected& rejected = *answer.mutable_rejected();
  *rejected.mutable_id() = id;
  rejected.set_reason_code(code);
  rejected.set_message(message);
  rejected.set_host_fault(host_fault);
  return answer;
}

FakeAgent::Key KeyOf(const v1::SlotId& id) { return {id.job_id(), id.attempt()}; }

}  // namespace

v1::Hello FakeAgent::Hello() const {
  v1::Hello hello;
  hello.set_protocol_version(1);
  hello.set_node(name_);
  hello.set_address(absl::StrCat("addr-", name_));
  hello.set_agent_version("fake");
  hello.set_boot_id(absl::StrCat(name_, "-boot", boots_));
  hello.set_highest_term(highest_term_);
  for (int i = 0; i < gpus_; ++i) hello.add_gpus()->set_index(i);
  for (const auto& [key, slot] : slots_) *hello.add_slots() = slot.status;
  return hello;
}

std::vector<v1::AgentMessage> FakeAgent::Receive(const v1::SchedulerMessage& message, absl::Time now) {
  std::vector<v1::AgentMessage> answers;
  switch (message.payload_case()) {
    case v1::SchedulerMessage::kWelcome:
      highest_term_ = std::max(highest_term_, message.welcome().term());
      break;
    case v1::SchedulerMessage::kPrepare:
      answers.push_back(Prepare(message.prepare()));
      break;
    case v1::SchedulerMessage::kStart:
      answers.push_back(Start(message.start(), now));
      break;
    case v1::SchedulerMessage::kStop:
      if (auto answer = Stop(message.stop(), now); answer.has_value()) answers.push_back(*std::move(answer));
      break;
    case v1::SchedulerMessage::kRelease: {
      const auto slot = slots_.find(KeyOf(message.release().id()));
      if (slot == slots_.end()) break;
      if (slot->second.status.state() == v1::SLOT_STATE_ENDED) {
        slots_.erase(slot);
      } else {
        violations_.push_back(absl::StrCat(name_, ": release of a slot that has not ended, job ", slot->first.job));
      }
      break;
    }
    default:
      break;
  }
  return answers;
}

v1::AgentMessage FakeAgent::Report(const Slot& slot) {
  v1::AgentMessage message;
  *message.mutable_slot() = slot.status;
  return message;
}

std::optional<std::string> FakeAgent::Conflict(const v1::PrepareSlot& prepare) const {
  for (const auto& [key, slot] : slots_) {
    if (slot.status.state() == v1::SLOT_STATE_ENDED) continue;
    if (key.job == prepare.id().job_id()) return absl::StrCat("OTHER_ATTEMPT_RUNS ", key.job, "/", key.attempt);
    for (const uint32_t gpu : prepare.gpus()) {
      const auto& used = slot.status.gpus();
      if (std::find(used.begin(), used.end(), gpu) != used.end()) return absl::StrCat("GPU_BUSY ", gpu, " by ", key.job, "/", key.attempt);
    }
  }
  return std::nullopt;
}

v1::AgentMessage FakeAgent::Prepare(const v1::PrepareSlot& prepare) {
  const Key key = KeyOf(prepare.id());
  if (prepare.term() < highest_term_) return Rejection(prepare.id(), "STALE_TERM", "an old term", false);
  if (const auto slot = slots_.find(key); slot != slots_.end()) return Report(slot->second);
  if (key.attempt < highest_attempt_[key.job]) {
    violations_.push_back(absl::StrCat(name_, ": attempt ", key.attempt, " of job ", key.job, " after ", highest_attempt_[key.job]));
    return Rejection(prepare.id(), "STALE_ATTEMPT", "an old attempt", true);
  }
  if (const auto conflict = Conflict(prepare); conflict.has_value()) {
    violations_.push_back(absl::StrCat(name_, ": job ", key.job, "/", key.attempt, ": ", *conflict));
    return Rejection(prepare.id(), "GPU_BUSY", *conflict, true);
  }
  if (refusal_.has_value()) return Rejection(prepare.id(), refusal_->reason_code(), refusal_->message(), refusal_->host_fault());
  highest_attempt_[key.job] = key.attempt;
  Slot& slot = slots_[key];
  slot.first_rank = prepare.slot() * prepare.ranks_per_node();
  slot.ranks = prepare.ranks_per_node();
  *slot.status.mutable_id() = prepare.id();
  slot.status.set_state(v1::SLOT_STATE_PREPARED);
  if (prepare.slot() == 0) slot.status.set_master_port(next_port_++);
  *slot.status.mutable_gpus() = prepare.gpus();
  return Report(slot);
}

v1::AgentMessage FakeAgent::Start(const v1::StartSlot& start, absl::Time now) {
  const auto found = slots_.find(KeyOf(start.id()));
  if (found == slots_.end()) return Rejection(start.id(), "NO_SUCH_SLOT", "nothing is prepared", true);
  Slot& slot = found->second;
  if (slot.status.state() == v1::SLOT_STATE_PREPARED) {
    slot.status.set_state(v1::SLOT_STATE_STARTED);
    *slot.status.mutable_start_time() = ToProtoTime(now);
  }
  return Report(slot);
}

void FakeAgent::End(Slot* slot, absl::Time now) {
  const bool started = slot->status.state() == v1::SLOT_STATE_STARTED;
  for (uint32_t rank = slot->first_rank; started && rank < slot->first_rank + slot->ranks; ++rank) {
    const auto& exits = slot->status.exits();
    if (std::any_of(exits.begin(), exits.end(), [&](const v1::RankExit& exit) { return exit.rank() == rank; })) continue;
    v1::RankExit& exit = *slot->status.add_exits();
    exit.set_rank(rank);
    exit.set_signal(kSigTerm);
    exit.set_stopped(true);
    *exit.mutable_time() = ToProtoTime(now);
  }
  slot->status.set_state(v1::SLOT_STATE_ENDED);
  *slot->status.mutable_end_time() = ToProtoTime(now);
}

std::optional<v1::AgentMessage> FakeAgent::Stop(const v1::StopSlot& stop, absl::Time now) {
  const auto found = slots_.find(KeyOf(stop.id()));
  if (found == slots_.end()) return Rejection(stop.id(), "NO_SUCH_SLOT", "nothing to stop", true);
  Slot& slot = found->second;
  slot.told_to_stop = true;
  if (stubborn_ && slot.running()) return std::nullopt;
  if (slot.status.state() != v1::SLOT_STATE_ENDED) End(&slot, now);
  return Report(slot);
}

std::optional<v1::AgentMessage> FakeAgent::ExitRank(Key key, uint32_t rank, int code, int signal, absl::Time now) {
  const auto found = slots_.find(key);
  if (found == slots_.end() || !found->second.running()) return std::nullopt;
  Slot& slot = found->second;
  v1::RankExit& exit = *slot.status.add_exits();
  exit.set_rank(rank);
  exit.set_exit_code(code);
  exit.set_signal(signal);
  *exit.mutable_time() = ToProtoTime(now);
  if (code != 0 || signal != 0) exit.add_last_log_lines(absl::StrCat("last words of rank ", rank));
  if (slot.status.exits_size() == static_cast<int>(slot.ranks)) {
    slot.status.set_state(v1::SLOT_STATE_ENDED);
    *slot.status.mutable_end_time() = ToProtoTime(now);
  }
  return Report(slot);
}

std::optional<v1::AgentMessage> FakeAgent::LoseSupervisor(Key key, absl::Time now) {
  const auto found = slots_.find(key);
  if (found == slots_.end() || found->second.status.state() == v1::SLOT_STATE_ENDED) return std::nullopt;
  found->second.status.set_state(v1::SLOT_STATE_ENDED);
  found->second.status.set_supervisor_lost(true);
  *found->second.status.mutable_end_time() = ToProtoTime(now);
  return Report(found->second);
}

void FakeAgent::Reboot() {
  ++boots_;
  slots_.clear();
}

std::vector<v1::AgentMessage> FakeAgent::SetStubborn(bool stubborn, absl::Time now) {
  stubborn_ = stubborn;
  std::vector<v1::AgentMessage> reports;
  for (auto& [key, slot] : slots_) {
    if (stubborn || !slot.told_to_stop || !slot.running()) continue;
    End(&slot, now);
    reports.push_back(Report(slot));
  }
  return reports;
}

}  // namespace closeknit
