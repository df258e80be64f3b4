#include "scheduler/publisher.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/log.h"
#include "scheduler/core/job_entry.h"

namespace closeknit {
namespace {

ReadModel::Update ToUpdate(Effects& effects, const Core& core, absl::Time now) {
  ReadModel::Update update;
  update.jobs.reserve(effects.jobs.size());
  for (std::shared_ptr<const v1::Job>& job : effects.jobs) {
    const uint32_t position = IsPending(*job) ? static_cast<uint32_t>(core.QueuePosition(job->job_id())) : 0;
    update.jobs.push_back({std::move(job), position, now});
  }
  update.purged_jobs = std::move(effects.purged_jobs);
  update.nodes = std::move(effects.nodes);
  update.deleted_nodes = std::move(effects.deleted_nodes);
  for (const RecordWrite& write : effects.writes) {
    if (write.table != Table::kFabric || !write.value.has_value()) continue;
    auto record = std::make_shared<v1::FabricRecord>();
    CHECK(record->ParseFromString(*write.value)) << "a fabric record that was just written";
    update.fabric = {std::move(record), core.view()->shared_fabric()};
  }
  return update;
}

void WriteLog(const Notice& notice) {
  const std::string job = absl::StrCat(notice.job), attempt = absl::StrCat(notice.attempt);
  const std::string elapsed = absl::FormatDuration(notice.elapsed);
  switch (notice.kind) {
    // Thousands a second in a busy cluster, and in the store anyway.
    case Notice::Kind::kJobSubmitted:
      return Log(LogLevel::kDebug, "job submitted", {{"job", job}});
    case Notice::Kind::kJobPlaced:
      return Log(LogLevel::kDebug, "gang placed", {{"job", job}, {"attempt", attempt}, {"size", notice.detail}, {"waited", elapsed}});
    case Notice::Kind::kGangStarted:
      return Log(LogLevel::kDebug, "gang started", {{"job", job}, {"attempt", attempt}, {"size", notice.detail}, {"took", elapsed}});
    case Notice::Kind::kJobEnded:
      return Log(LogLevel::kInfo, "job ended", {{"job", job}, {"cause", notice.detail}, {"ran", elapsed}});
    case Notice::Kind::kPrepareFailed:
      return Log(LogLevel::kWarning, "a host cannot prepare its part",
                 {{"job", job}, {"attempt", attempt}, {"node", notice.node}, {"why", notice.detail}});
    case Notice::Kind::kRestart:
      return Log(LogLevel::kInfo, "gang restarts", {{"job", job}, {"attempt", attempt}, {"why", notice.detail}});
    case Notice::Kind::kNodeState:
      return Log(LogLevel::kInfo, "node", {{"node", notice.node}, {"state", notice.detail}});
    case Notice::Kind::kRefusedReport:
      return Log(LogLevel::kWarning, "report refused", {{"node", notice.node}, {"job", job}, {"attempt", attempt}, {"why", notice.detail}});
  }
}

}  // namespace

void Publisher::LetOut(Effects effects, const Core& core, absl::Time now) {
  // Sessions end before the commands of this batch go out: none of those is for them.
  for (const CloseSession& close : effects.closes) sessions_->Close(close.session, close.status);
  model_->Publish(ToUpdate(effects, core, now));
  for (AgentCommand& command : effects.commands) sessions_->Send(command.session, std::move(command.message));
  bool nodes_changed = false;
  for (const Notice& notice : effects.notices) {
    metrics_->Note(notice);
    WriteLog(notice);
    nodes_changed = nodes_changed || notice.kind == Notice::Kind::kNodeState;
  }
  if (nodes_changed) metrics_->SetAgents(sessions_->connected());
}

void Publisher::Restored(Effects effects, const Core& core, const std::optional<v1::FabricRecord>& fabric, absl::Time now) {
  if (fabric.has_value()) {
    ReadModel::Update update;
    update.fabric = {std::make_shared<v1::FabricRecord>(*fabric), core.view()->shared_fabric()};
    model_->Publish(std::move(update));
  }
  LetOut(std::move(effects), core, now);
}

void Publisher::StoreFailed(const absl::Status& status) {
  metrics_->StoreFailed();
  sessions_->CloseAll(status);
}

void Publisher::Refuse(SessionId session, const absl::Status& status) { sessions_->Close(session, status); }

void Publisher::Committed(size_t events, size_t writes, absl::Duration elapsed) { metrics_->Committed(events, writes, elapsed); }

}  // namespace closeknit
