#include "scheduler/commit_loop.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "cluster_model/readers.h"
#include "proto/base/check.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "scheduler/fabric_formats.h"

namespace closeknit {
namespace {

constexpr absl::Duration kRestorePause = absl::Seconds(1);  // between tries to come back from a failed store

template <typename Record>
absl::Status Read(const Store& store, Table table, const std::function<void(absl::string_view key, Record record)>& take) {
  absl::Status status;
  const absl::Status scanned = store.Scan(table, [&](absl::string_view key, absl::string_view value) {
    Record record;
    if (!record.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
      status = absl::DataLossError(absl::StrCat("table ", TableName(table), " has a record that cannot be read: key 0x",
                                                absl::BytesToHexString(key), ", ", value.size(), " bytes"));
      return false;
    }
    take(key, std::move(record));
    return true;
  });
  RETURN_IF_ERROR(scanned);
  return status;
}

absl::StatusOr<StoredState> Load(const Store& store) {
  StoredState stored;
  RETURN_IF_ERROR(
      Read<v1::MetaRecord>(store, Table::kMeta, [&](absl::string_view, v1::MetaRecord meta) { stored.meta = std::move(meta); }));
  RETURN_IF_ERROR(Read<v1::FabricRecord>(store, Table::kFabric,
                                         [&](absl::string_view, v1::FabricRecord fabric) { stored.fabric_record = std::move(fabric); }));
  RETURN_IF_ERROR(
      Read<v1::NodeRecord>(store, Table::kNodes, [&](absl::string_view, v1::NodeRecord node) { stored.nodes.push_back(std::move(node)); }));
  RETURN_IF_ERROR(
      Read<v1::JobRecord>(store, Table::kJobs, [&](absl::string_view, v1::JobRecord job) { stored.jobs.push_back(std::move(job)); }));
  RETURN_IF_ERROR(Read<v1::RequestRecord>(store, Table::kRequests, [&](absl::string_view key, v1::RequestRecord request) {
    stored.requests.emplace_back(std::string(key), std::move(request));
  }));
  if (!stored.fabric_record.has_value()) return stored;
  const v1::FabricRecord& record = *stored.fabric_record;
  absl::StatusOr<Fabric> fabric = ReadFabricAs(record.description(), record.file_name(), record.format());
  if (!fabric.ok()) return absl::DataLossError(absl::StrCat("the stored fabric description cannot be read: ", fabric.status().message()));
  stored.fabric = std::make_shared<const Fabric>(*std::move(fabric));
  return stored;
}

std::string NewClusterId() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) absl::StrAppendFormat(&id, "%08x", random());
  return id;
}

bool SetCall(Event* event, CallId call) {
  return std::visit(
      [call](auto& alternative) {
        if constexpr (requires { alternative.call; }) {
          alternative.call = call;
          return true;
        } else {
          return false;
        }
      },
      *event);
}

}  // namespace

absl::StatusOr<RestoredCore> RestoreCore(Store* store, const CoreConfig& config, absl::Time now) {
  ASSIGN_OR_RETURN(StoredState stored, Load(*store));
  v1::MetaRecord& meta = stored.meta;
  meta.set_schema_version(kStoreSchemaVersion);
  meta.set_term(meta.term() + 1);
  if (meta.next_job_id() == 0) meta.set_next_job_id(1);
  if (meta.cluster_id().empty()) meta.set_cluster_id(NewClusterId());
  // The term is on disk before anything is done under it.
  RETURN_IF_ERROR(store->Commit({{Table::kMeta, "meta", meta.SerializeAsString()}}));
  RestoredCore restored;
  restored.fabric = stored.fabric_record;
  ASSIGN_OR_RETURN(restored.core, Core::Restore(std::move(stored), config, now, &restored.effects));
  if (!restored.effects.writes.empty()) RETURN_IF_ERROR(store->Commit(restored.effects.writes));
  return restored;
}

CommitLoop::CommitLoop(Store* store, const CoreConfig& config, EffectSink* sink) : store_(store), config_(config), sink_(sink) {}

CommitLoop::~CommitLoop() { Stop(); }

absl::Status CommitLoop::Start() {
  ASSIGN_OR_RETURN(RestoredCore restored, RestoreCore(store_, config_, Now()));
  core_ = std::move(restored.core);
  sink_->Restored(std::move(restored.effects), *core_, restored.fabric, now_);
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void CommitLoop::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wake_.SignalAll();
  if (thread_.joinable()) thread_.join();
}

void CommitLoop::Post(Event event) {
  MutexLock lock(&mutex_);
  if (stopping_) return;
  queue_.push_back({std::move(event), nullptr});
  if (queue_.size() == 1) wake_.Signal();
}

void CommitLoop::Call(Event event, Answer answer) {
  absl::Status refusal;
  {
    MutexLock lock(&mutex_);
    if (stopping_) {
      refusal = absl::UnavailableError("the scheduler is stopping");
    } else if (queue_.size() >= kMaxQueue) {
      refusal = absl::ResourceExhaustedError(absl::StrCat(queue_.size(), " calls wait already; try again"));
    } else {
      queue_.push_back({std::move(event), std::move(answer)});
      if (queue_.size() == 1) wake_.Signal();
      return;
    }
  }
  answer(refusal);
}

// Never back: the core's contract. A wall clock that is set back holds time still until it has caught up.
absl::Time CommitLoop::Now() {
  now_ = std::max(now_, absl::Now());
  return now_;
}

void CommitLoop::Run() {
  std::vector<Entry> batch;
  while (TakeBatch(&batch)) {
    if (core_ == nullptr) TryRestore();
    if (core_ == nullptr) {
      RefuseAll(std::move(batch));
    } else {
      Step(std::move(batch));
    }
    batch.clear();
  }
  const absl::Status stopped = absl::UnavailableError("the scheduler is stopping");
  FailCalls(stopped);
  std::vector<Entry> rest;
  {
    MutexLock lock(&mutex_);
    rest.swap(queue_);
  }
  for (Entry& entry : rest) {
    if (entry.answer) entry.answer(stopped);
  }
}

bool CommitLoop::TakeBatch(std::vector<Entry>* batch) {
  const absl::Time deadline = core_ == nullptr ? next_restore_ : core_->next_deadline();
  MutexLock lock(&mutex_);
  while (!stopping_ && queue_.empty()) {
    const absl::Time now = Now();
    if (now >= deadline) break;
    wake_.WaitFor(&mutex_, deadline - now);
  }
  if (stopping_) return false;
  if (queue_.size() <= kMaxBatch) {
    batch->swap(queue_);
  } else {
    batch->assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(queue_.begin() + kMaxBatch));
    queue_.erase(queue_.begin(), queue_.begin() + kMaxBatch);
  }
  return true;
}

void CommitLoop::Step(std::vector<Entry> batch) {
  std::vector<Event> events;
  events.reserve(batch.size());
  for (Entry& entry : batch) {
    if (entry.answer) {
      const CallId call = next_call_++;
      CHECK(SetCall(&entry.event, call)) << "an event without a call field cannot be answered";
      calls_.emplace(call, std::move(entry.answer));
    }
    events.push_back(std::move(entry.event));
  }
  Effects effects = core_->Apply(events, Now());
  if (!effects.writes.empty()) {
    const absl::Time start = absl::Now();
    if (const absl::Status status = store_->Commit(effects.writes); !status.ok()) return DropCore(status);
    sink_->Committed(events.size(), effects.writes.size(), absl::Now() - start);
  }
  // Readers first: who was told of a job finds it.
  std::vector<closeknit::Reply> replies = std::move(effects.replies);
  sink_->LetOut(std::move(effects), *core_, now_);
  Reply(std::move(replies));
}

void CommitLoop::Reply(std::vector<closeknit::Reply> replies) {
  for (closeknit::Reply& reply : replies) {
    const auto found = calls_.find(reply.call);
    CHECK(found != calls_.end()) << "a reply to call " << reply.call << ", which nobody waits for";
    const Answer answer = std::move(found->second);
    calls_.erase(found);
    answer(std::move(reply.result));
  }
}

void CommitLoop::FailCalls(const absl::Status& status) {
  for (auto& [call, answer] : std::exchange(calls_, {})) answer(status);
}

void CommitLoop::RefuseAll(std::vector<Entry> batch) {
  for (Entry& entry : batch) {
    if (entry.answer) entry.answer(store_status_);
    if (const auto* connected = std::get_if<AgentConnected>(&entry.event)) sink_->Refuse(connected->session, store_status_);
  }
}

void CommitLoop::DropCore(const absl::Status& why) {
  Log(LogLevel::kError, "the store cannot be written: no work is accepted until it can", {{"error", std::string(why.message())}});
  store_status_ = absl::UnavailableError(absl::StrCat("the scheduler's store cannot be written: ", why.message()));
  core_ = nullptr;
  next_restore_ = Now() + kRestorePause;
  sink_->StoreFailed(store_status_);  // first, as in Step: who was told of the failure finds it
  FailCalls(store_status_);
}

void CommitLoop::TryRestore() {
  if (Now() < next_restore_) return;
  absl::StatusOr<RestoredCore> restored = RestoreCore(store_, config_, Now());
  if (!restored.ok()) {
    store_status_ = absl::UnavailableError(absl::StrCat("the scheduler's store cannot be written: ", restored.status().message()));
    next_restore_ = Now() + kRestorePause;
    return;
  }
  core_ = std::move(restored->core);
  Log(LogLevel::kInfo, "the store can be written again: restored", {});
  sink_->Restored(std::move(restored->effects), *core_, restored->fabric, now_);
}

}  // namespace closeknit
