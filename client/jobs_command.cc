#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/commands.h"
#include "client/flag_values.h"
#include "proto/base/host_list.h"
#include "proto/base/proto_time.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

// What squeue shows without -t: everything that has not ended.
constexpr v1::JobState kUnended[] = {v1::JOB_STATE_PENDING, v1::JOB_STATE_PREPARING, v1::JOB_STATE_RUNNING, v1::JOB_STATE_RESTARTING,
                                     v1::JOB_STATE_STOPPING};

absl::StatusOr<std::vector<uint64_t>> ParseJobIds(const std::vector<std::string>& texts) {
  std::vector<uint64_t> ids;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(const uint64_t id, ParseJobId(text));
    ids.push_back(id);
  }
  return ids;
}

absl::StatusOr<v1::ListJobsRequest> ListRequest(const QueueOptions& options) {
  v1::ListJobsRequest request;
  if (options.states.empty() && options.jobs.empty()) {
    for (const v1::JobState state : kUnended) request.add_states(state);
  } else {
    ASSIGN_OR_RETURN(const auto states, ParseJobStates(options.states));
    for (const v1::JobState state : states) request.add_states(state);
  }
  ASSIGN_OR_RETURN(const auto ids, ParseJobIds(options.jobs));
  request.mutable_job_ids()->Assign(ids.begin(), ids.end());
  if (!options.user.empty()) request.add_users(options.user == "me" ? CallerName() : options.user);
  if (!options.nodes.empty()) request.add_nodes(options.nodes);
  request.set_name(options.name);
  request.set_partition(options.partition);
  return request;
}

// All pages as one response.
absl::StatusOr<v1::ListJobsResponse> ListAll(Connection& connection, v1::ListJobsRequest request) {
  v1::ListJobsResponse all;
  do {
    ASSIGN_OR_RETURN(v1::ListJobsResponse page, connection.Call(connection.jobs(), &v1::JobService::Stub::ListJobs, request));
    for (v1::Job& job : *page.mutable_jobs()) *all.add_jobs() = std::move(job);
    all.set_total_size(page.total_size());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return all;
}

absl::Duration RunTime(const v1::Job& job) {
  if (!job.has_start_time()) return absl::ZeroDuration();
  const absl::Time end = job.has_end_time() ? FromProtoTime(job.end_time()) : absl::Now();
  return end - FromProtoTime(job.start_time());
}

std::string Hosts(const v1::Job& job) {
  const auto& hosts = job.attempt().placement().hosts();
  return FoldHostSet({hosts.begin(), hosts.end()});
}

bool HoldsHosts(v1::JobState state) { return state != v1::JOB_STATE_PENDING && !HasEnded(state); }

// squeue's last column: where it runs, or why it does not.
std::string HostsOrReason(const v1::Job& job) {
  if (HasEnded(job.state())) return job.has_verdict() ? VerdictText(job.verdict()) : "";
  if (HoldsHosts(job.state())) {
    return job.reason().empty() ? Hosts(job) : absl::StrCat(Hosts(job), " (", job.reason(), ")");
  }
  if (job.reason().empty()) return absl::StrCat("(", job.reason_code(), ")");
  return job.reason_code().empty() ? absl::StrCat("(", job.reason(), ")") : absl::StrCat("(", job.reason_code(), ": ", job.reason(), ")");
}

void AppendTraffic(const v1::Placement& placement, std::string* text) {
  for (const auto& [tier, domains] : std::map<std::string, uint32_t>(placement.domains().begin(), placement.domains().end())) {
    absl::StrAppendFormat(text, "  %-10s %u used\n", absl::StrCat(tier, "s"), domains);
  }
  const std::map<std::string, double> traffic(placement.traffic_bytes().begin(), placement.traffic_bytes().end());
  for (const auto& [tier, bytes] : traffic) {
    const auto bound = placement.lower_bound_bytes().find(tier);
    absl::StrAppendFormat(text, "  %-10s %s a step over its uplinks", tier, BytesText(bytes));
    if (bound != placement.lower_bound_bytes().end()) absl::StrAppend(text, ", at least ", BytesText(bound->second));
    *text += "\n";
  }
  absl::StrAppend(text, "  ", placement.proven_optimal() ? "proven optimal" : absl::StrFormat("gap %.1f %%", placement.gap() * 100), "\n");
}

void AppendAttempt(const v1::Attempt& attempt, std::string* text) {
  const v1::Placement& placement = attempt.placement();
  absl::StrAppendFormat(text, "Attempt %u   placed %s, started %s, ended %s\n", attempt.number(),
                        ClockTime(FromProtoTime(attempt.placed_time())), ClockTime(FromProtoTime(attempt.start_time())),
                        ClockTime(FromProtoTime(attempt.end_time())));
  absl::StrAppend(text, "  hosts      ", FoldHostList(std::vector<std::string>(placement.hosts().begin(), placement.hosts().end())),
                  "  (in rank order)\n");
  if (!placement.spares().empty()) absl::StrAppend(text, "  spares     ", absl::StrJoin(placement.spares(), ","), "\n");
  if (attempt.master_port() != 0) absl::StrAppend(text, "  rendezvous ", attempt.master_address(), ":", attempt.master_port(), "\n");
  if (!placement.why().empty()) absl::StrAppend(text, "  why        ", placement.why(), "\n");
  if (!placement.traffic_bytes().empty()) AppendTraffic(placement, text);
  if (attempt.has_verdict()) absl::StrAppend(text, "  verdict    ", VerdictText(attempt.verdict()), "\n");
}

std::string JobText(const Output& output, const v1::Job& job) {
  const v1::JobSpec& spec = job.spec();
  std::string text;
  absl::StrAppendFormat(&text, "Job %s  %s  %s\n", JobLabel(job), Printable(spec.name()), Coloured(output, job.state()));
  absl::StrAppendFormat(&text, "  user %s, partition %s, priority %d\n", Printable(job.user()), spec.partition(), spec.priority());
  const uint32_t ranks_per_node = spec.ranks_per_node() != 0 ? spec.ranks_per_node() : std::max(spec.gpus_per_node(), 1u);
  absl::StrAppendFormat(&text, "  %u nodes, %u GPUs and %u ranks on each\n", spec.nodes(), spec.gpus_per_node(), ranks_per_node);
  std::vector<std::string> words;
  for (const std::string& word : spec.command()) words.push_back(Printable(word));
  absl::StrAppend(&text, "  command    ",
                  spec.script().empty() ? absl::StrJoin(words, " ") : absl::StrCat("a script of ", spec.script().size(), " bytes"), "\n");
  absl::StrAppend(&text, "  directory  ", Printable(spec.working_directory()), "\n");
  absl::StrAppendFormat(&text, "  submitted %s, started %s, ended %s, ran %s\n", ClockTime(FromProtoTime(job.submit_time())),
                        ClockTime(FromProtoTime(job.start_time())), ClockTime(FromProtoTime(job.end_time())), ClockDuration(RunTime(job)));
  if (!job.reason().empty()) absl::StrAppend(&text, "  reason     ", Printable(job.reason()), "\n");
  if (job.restarts() > 0) absl::StrAppend(&text, "  restarts   ", job.restarts(), "\n");
  for (const v1::Attempt& attempt : job.past_attempts()) AppendAttempt(attempt, &text);
  if (job.has_attempt()) AppendAttempt(job.attempt(), &text);
  if (job.has_verdict()) {
    absl::StrAppend(&text, "Verdict    ", VerdictText(job.verdict()), "\n");
    for (const std::string& line : job.verdict().last_log_lines()) absl::StrAppend(&text, "  | ", Printable(line), "\n");
  }
  return text;
}

}  // namespace

int Queue(Session& session, const QueueOptions& options) {
  const Output& output = session.output;
  const auto request = ListRequest(options);
  if (!request.ok()) return Fail(output, request.status());
  const auto list = ListAll(*session.connection, *request);
  if (!list.ok()) return Fail(output, list.status());
  if (output.structured()) {
    PrintMessage(output, *list);
    return kOk;
  }
  std::vector<Table::Column> columns = {
      {"JOB", Align::kRight},   {"PARTITION"},          {"NAME"}, {"USER"}, {"STATE"}, {"TIME", Align::kRight},
      {"NODES", Align::kRight}, {"GPUS", Align::kRight}};
  if (output.wide()) columns.insert(columns.end(), {{"PRIORITY", Align::kRight}, {"SUBMITTED"}, {"STARTED"}, {"RESTARTS", Align::kRight}});
  columns.push_back({"NODELIST(REASON)"});
  Table table(columns);
  for (const v1::Job& job : list->jobs()) {
    const v1::JobSpec& spec = job.spec();
    std::vector<std::string> row = {JobLabel(job),
                                    spec.partition(),
                                    spec.name(),
                                    job.user(),
                                    StateName(job.state()),
                                    ClockDuration(RunTime(job)),
                                    absl::StrCat(spec.nodes()),
                                    absl::StrCat(uint64_t{spec.nodes()} * spec.gpus_per_node())};
    if (output.wide()) {
      row.insert(row.end(), {absl::StrCat(spec.priority()), ClockTime(FromProtoTime(job.submit_time())),
                             ClockTime(FromProtoTime(job.start_time())), absl::StrCat(job.restarts())});
    }
    row.push_back(HostsOrReason(job));
    table.Row(std::move(row));
  }
  PrintTable(output, table);
  return kOk;
}

int ShowJob(Session& session, const std::string& text) {
  const Output& output = session.output;
  const auto id = ParseJobId(text);
  if (!id.ok()) return Fail(output, id.status());
  v1::GetJobRequest request;
  request.set_job_id(*id);
  const auto job = session.connection->Call(session.connection->jobs(), &v1::JobService::Stub::GetJob, request);
  if (!job.ok()) return Fail(output, job.status());
  if (output.structured())
    PrintMessage(output, *job);
  else
    *output.out << JobText(output, *job) << std::flush;
  return kOk;
}

int Cancel(Session& session, const std::vector<std::string>& jobs) {
  const Output& output = session.output;
  const auto ids = ParseJobIds(jobs);
  if (!ids.ok()) return Fail(output, ids.status());
  v1::CancelJobRequest request;
  request.mutable_job_ids()->Assign(ids->begin(), ids->end());
  request.set_user(CallerName());
  const auto response = session.connection->Call(session.connection->jobs(), &v1::JobService::Stub::CancelJob, request);
  if (!response.ok()) return Fail(output, response.status());
  if (output.structured()) {
    PrintMessage(output, *response);
  } else {
    const int count = response->cancelled_job_ids_size();
    *output.out << (count == 0 ? std::string("Nothing to cancel: already ended\n")
                               : absl::StrCat("Cancelled ", count, count == 1 ? " job\n" : " jobs\n"));
  }
  return kOk;
}

}  // namespace closeknit
