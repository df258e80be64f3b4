#include "scheduler/core/verdict.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/proto_time.h"

namespace closeknit {
namespace {

constexpr int kMaxLines = 20;
constexpr size_t kMaxLineBytes = 4 << 10;

bool Failed(const v1::RankExit& exit) { return exit.exit_code() != 0 || exit.signal() != 0; }

v1::ExitVerdict VerdictOf(const v1::RankExit& exit, const std::string& node) {
  v1::ExitVerdict verdict;
  verdict.set_rank(static_cast<int32_t>(exit.rank()));
  verdict.set_node(node);
  if (exit.signal() != 0) {
    verdict.set_cause(v1::END_CAUSE_RANK_SIGNAL);
    verdict.set_signal(exit.signal());
    verdict.set_message(absl::StrCat("rank ", exit.rank(), " on ", node, " was killed by ", SignalName(exit.signal())));
  } else {
    verdict.set_cause(v1::END_CAUSE_RANK_EXIT);
    verdict.set_exit_code(exit.exit_code());
    verdict.set_message(absl::StrCat("rank ", exit.rank(), " on ", node, " exited with code ", exit.exit_code()));
  }
  if (!exit.error_message().empty()) {
    absl::StrAppend(verdict.mutable_message(), ": ", exit.error_message().substr(0, kMaxLineBytes));
  }
  const int skip = std::max(0, exit.last_log_lines_size() - kMaxLines);
  for (int i = skip; i < exit.last_log_lines_size(); ++i) verdict.add_last_log_lines(exit.last_log_lines(i).substr(0, kMaxLineBytes));
  *verdict.mutable_time() = exit.time();
  return verdict;
}

bool IsRankFailure(v1::EndCause cause) { return cause == v1::END_CAUSE_RANK_EXIT || cause == v1::END_CAUSE_RANK_SIGNAL; }

}  // namespace

std::optional<v1::ExitVerdict> FirstFailure(const v1::SlotStatus& status, const std::string& node, CountStopped count_stopped) {
  const v1::RankExit* first = nullptr;
  const auto earlier = [](const v1::RankExit& a, const v1::RankExit& b) {
    return std::pair(a.stopped(), FromProtoTime(a.time())) < std::pair(b.stopped(), FromProtoTime(b.time()));
  };
  for (const v1::RankExit& exit : status.exits()) {
    if (!Failed(exit) || (exit.stopped() && count_stopped == CountStopped::kNo)) continue;
    if (first == nullptr || earlier(exit, *first)) first = &exit;
  }
  if (first == nullptr) return std::nullopt;
  return VerdictOf(*first, node);
}

v1::ExitVerdict SupervisorLost(const v1::SlotStatus& status, const std::string& node, absl::Time now) {
  v1::ExitVerdict verdict;
  verdict.set_cause(v1::END_CAUSE_SUPERVISOR_LOST);
  verdict.set_message(absl::StrCat("the supervisor on ", node, " died, and its ranks with it"));
  verdict.set_rank(-1);
  verdict.set_node(node);
  *verdict.mutable_time() = status.has_end_time() ? status.end_time() : ToProtoTime(now);
  return verdict;
}

bool IsEarlierFailure(const v1::ExitVerdict& failure, const v1::ExitVerdict& verdict) {
  return IsRankFailure(verdict.cause()) && FromProtoTime(failure.time()) < FromProtoTime(verdict.time());
}

v1::JobState EndState(v1::EndCause cause) {
  switch (cause) {
    case v1::END_CAUSE_COMPLETED:
      return v1::JOB_STATE_COMPLETED;
    case v1::END_CAUSE_CANCELLED:
    case v1::END_CAUSE_DEPENDENCY_NEVER_SATISFIED:
      return v1::JOB_STATE_CANCELLED;
    case v1::END_CAUSE_TIME_LIMIT:
      return v1::JOB_STATE_TIMED_OUT;
    default:
      return v1::JOB_STATE_FAILED;
  }
}

std::string SignalName(int signal) {
  constexpr std::pair<int, absl::string_view> kNames[] = {
      {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},
      {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
      {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"},
  };
  for (const auto& [number, name] : kNames) {
    if (number == signal) return std::string(name);
  }
  return absl::StrCat("signal ", signal);
}

}  // namespace closeknit
