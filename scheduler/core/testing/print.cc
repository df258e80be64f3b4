#include "scheduler/core/testing/print.h"

#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "closeknit/v1/store.pb.h"
#include "proto/base/check.h"
#include "proto/base/host_list.h"
#include "proto/base/proto_time.h"

namespace closeknit {
namespace {

std::string Short(const std::string& enum_name, absl::string_view prefix) { return std::string(absl::StripPrefix(enum_name, prefix)); }

template <typename Repeated>
std::string Fold(const Repeated& names) {
  return FoldHostList(std::vector<std::string>(names.begin(), names.end()));
}

std::string Id(const v1::SlotId& id) { return absl::StrCat(id.job_id(), "/", id.attempt()); }

std::string PrintVerdict(const v1::ExitVerdict& verdict) {
  std::string text = absl::StrCat(Short(v1::EndCause_Name(verdict.cause()), "END_CAUSE_"), " \"", verdict.message(), "\"");
  if (verdict.last_log_lines_size() > 0) absl::StrAppend(&text, " log \"", absl::StrJoin(verdict.last_log_lines(), "|"), "\"");
  return text;
}

std::string PrintGang(const v1::GangMap& gang) {
  std::string text = absl::StrCat("hosts ", gang.hosts());
  for (const v1::GangTier& tier : gang.tiers()) {
    absl::StrAppend(&text, " ", tier.tier(), " ", tier.domains(), "*", absl::StrJoin(tier.slots(), ","));
  }
  return text;
}

std::string PrintCommand(const v1::SchedulerMessage& message) {
  switch (message.payload_case()) {
    case v1::SchedulerMessage::kWelcome:
      return absl::StrCat("WELCOME term ", message.welcome().term());
    case v1::SchedulerMessage::kPrepare: {
      const v1::PrepareSlot& prepare = message.prepare();
      return absl::StrCat("PREPARE ", Id(prepare.id()), " slot ", prepare.slot(), " of ", prepare.slots(), " gpus [",
                          absl::StrJoin(prepare.gpus(), ","), "] master ", prepare.master_address(), " ", PrintGang(prepare.gang()),
                          prepare.restart_count() > 0 ? absl::StrCat(" restart ", prepare.restart_count()) : "",
                          prepare.array_job_id() > 0 ? absl::StrCat(" task ", prepare.array_task_id()) : "");
    }
    case v1::SchedulerMessage::kStart: {
      const v1::StartSlot& start = message.start();
      return absl::StrCat("START ", Id(start.id()), " master ", start.master_address(), ":", start.master_port(), " ",
                          PrintGang(start.gang()));
    }
    case v1::SchedulerMessage::kStop:
      return absl::StrCat("STOP ", Id(message.stop().id()), " grace ",
                          absl::FormatDuration(FromProtoDuration(message.stop().grace_period())), " \"", message.stop().reason(), "\"");
    case v1::SchedulerMessage::kRelease:
      return absl::StrCat("RELEASE ", Id(message.release().id()));
    default:
      return "?";
  }
}

std::string PrintError(const absl::Status& status) {
  return absl::StrCat(absl::StatusCodeToString(status.code()), " ", std::string(status.message()));
}

struct ReplyPrinter {
  std::string operator()(const v1::SubmitJobResponse& r) const { return absl::StrCat("job ", r.job_id(), " tasks ", r.tasks()); }
  std::string operator()(const v1::CancelJobResponse& r) const {
    return absl::StrCat("cancelled [", absl::StrJoin(r.cancelled_job_ids(), ","), "]");
  }
  std::string operator()(const v1::DrainNodesResponse& r) const { return Nodes(r.nodes()); }
  std::string operator()(const v1::ResumeNodesResponse& r) const { return Nodes(r.nodes()); }
  std::string operator()(const v1::ApplyTopologyResponse& r) const {
    return absl::StrCat("version ", r.version(), " hosts ", r.hosts_total(), " added [", absl::StrJoin(r.hosts_added(), ","), "] removed [",
                        absl::StrJoin(r.hosts_removed(), ","), "] moved [", absl::StrJoin(r.hosts_moved(), ","), "]");
  }
  std::string operator()(const std::shared_ptr<const ClusterView>&) const { return "snapshot"; }
  template <typename Repeated>
  static std::string Nodes(const Repeated& nodes) {
    std::string text;
    for (const v1::Node& node : nodes) absl::StrAppend(&text, text.empty() ? "" : "; ", PrintNode(node));
    return text;
  }
};

std::string PrintNotice(const Notice& notice) {
  constexpr absl::string_view kNames[] = {"submitted", "placed", "started", "ended", "prepare failed", "restart", "node", "refused"};
  std::string text = std::string(kNames[static_cast<int>(notice.kind)]);
  if (notice.job != 0) absl::StrAppend(&text, " job ", notice.job, "/", notice.attempt);
  if (!notice.node.empty()) absl::StrAppend(&text, " ", notice.node);
  if (!notice.detail.empty()) absl::StrAppend(&text, " \"", notice.detail, "\"");
  if (notice.elapsed != absl::ZeroDuration()) absl::StrAppend(&text, " after ", absl::FormatDuration(notice.elapsed));
  return text;
}

std::string PrintWrite(const RecordWrite& write) {
  if (write.table != Table::kJobs) {
    std::string key = write.key;
    for (char& c : key) c = c == '\0' ? '/' : c;
    return absl::StrCat(write.value.has_value() ? "store " : "delete ", std::string(TableName(write.table)), " ", key);
  }
  if (!write.value.has_value()) return "delete job";
  v1::JobRecord record;
  CHECK(record.ParseFromString(*write.value)) << "an unreadable record";
  std::string text = absl::StrCat("store job ", PrintJob(record.job()));
  if (record.avoid_nodes_size() > 0) absl::StrAppend(&text, " avoids ", Fold(record.avoid_nodes()));
  if (record.lingering_slots_size() > 0) absl::StrAppend(&text, " lingering [", absl::StrJoin(record.lingering_slots(), ","), "]");
  return text;
}

}  // namespace

std::string PrintJob(const v1::Job& job) {
  std::string text = absl::StrCat(job.job_id(), ": ", Short(v1::JobState_Name(job.state()), "JOB_STATE_"));
  if (job.has_attempt()) {
    absl::StrAppend(&text, " attempt ", job.attempt().number(), " on ", Fold(job.attempt().placement().hosts()));
    if (job.attempt().master_port() != 0)
      absl::StrAppend(&text, " master ", job.attempt().master_address(), ":", job.attempt().master_port());
  }
  if (job.restarts() > 0) absl::StrAppend(&text, " restarts ", job.restarts());
  if (!job.reason().empty()) absl::StrAppend(&text, " (", job.reason_code(), ": ", job.reason(), ")");
  if (job.has_verdict()) {
    absl::StrAppend(&text, " ", PrintVerdict(job.verdict()));
  } else if (job.attempt().has_verdict()) {
    absl::StrAppend(&text, " attempt's ", PrintVerdict(job.attempt().verdict()));
  }
  return text;
}

std::string PrintNode(const v1::Node& node) {
  std::string text = absl::StrCat(node.name(), ": ", Short(v1::NodeState_Name(node.state()), "NODE_STATE_"), " ", node.gpus_free(), "/",
                                  node.gpus_total());
  for (const v1::NodeAllocation& allocation : node.allocations()) {
    absl::StrAppend(&text, " ", allocation.job_id(), "/", allocation.attempt(), "[", absl::StrJoin(allocation.gpus(), ","), "]");
  }
  if (!node.reason().empty()) absl::StrAppend(&text, " (", node.reason(), ")");
  for (const std::string& condition : node.conditions()) absl::StrAppend(&text, " {", condition, "}");
  return text;
}

std::string Print(const Effects& effects, const std::function<std::string(SessionId)>& agent) {
  std::string text;
  const auto line = [&](const std::string& what) { absl::StrAppend(&text, what, "\n"); };
  for (const RecordWrite& write : effects.writes) {
    if (write.table != Table::kMeta) line(PrintWrite(write));
  }
  for (const auto& node : effects.nodes) line(absl::StrCat("node ", PrintNode(*node)));
  for (const std::string& name : effects.deleted_nodes) line(absl::StrCat("node ", name, " deleted"));
  for (const JobId id : effects.purged_jobs) line(absl::StrCat("purged ", id));
  for (const Reply& reply : effects.replies) {
    line(absl::StrCat("reply: ", reply.result.ok() ? std::visit(ReplyPrinter(), *reply.result) : PrintError(reply.result.status())));
  }
  for (const AgentCommand& command : effects.commands)
    line(absl::StrCat("send ", agent(command.session), ": ", PrintCommand(command.message)));
  for (const CloseSession& close : effects.closes) line(absl::StrCat("close ", agent(close.session), ": ", PrintError(close.status)));
  for (const Notice& notice : effects.notices) line(absl::StrCat("notice: ", PrintNotice(notice)));
  return text;
}

}  // namespace closeknit
