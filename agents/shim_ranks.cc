// The slot's processes: started, watched, ended.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agents/rank_error.h"
#include "agents/shim.h"
#include "proto/base/log.h"
#include "proto/base/proto_time.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr absl::Duration kSweepGrace = absl::Seconds(2);  // from SIGTERM to SIGKILL for what ended ranks left behind
constexpr absl::Duration kMinKillPause = absl::Milliseconds(20);
constexpr absl::Duration kMaxKillPause = absl::Seconds(1);
constexpr int kCannotStart = 126;            // as a shell's
constexpr size_t kMaxDrainBytes = 16 << 20;  // of one pipe at a rank's end

std::string CgroupName(const SlotDirectory& directory, const v1::SlotId& id) {
  // Several agents may share a machine in tests: the spool's path tells their groups apart.
  return absl::StrCat("closeknit-", absl::Hex(std::hash<std::string>()(directory.path())), "-", SlotName(id));
}

}  // namespace

void Shim::Start(const v1::StartSlot& start) {
  if (state() != v1::SLOT_STATE_PREPARED) return Publish();  // a repeated command
  // From here on the slot has run, whatever happens to us: that is on disk before there is a process.
  reply_.mutable_status()->set_state(v1::SLOT_STATE_STARTED);
  *reply_.mutable_status()->mutable_start_time() = ToProtoTime(absl::Now());
  std::vector<GangHost> hosts;
  absl::Status ready = WriteGangFiles(start, &hosts);
  cgroup_ = SlotCgroup::Create(CgroupName(directory_, order_.prepare().id()));
  if (ready.ok() && !cgroup_.path().empty()) ready = WriteDurably(directory_.cgroup(), cgroup_.path());
  if (ready.ok()) ready = WriteDurably(directory_.status(), reply_);
  if (!ready.ok()) {
    // Without its record no rank may run.
    Log(LogLevel::kError, "cannot start", {{"error", ready.ToString()}});
    v1::RankExit& exit = *reply_.mutable_status()->add_exits();
    exit.set_rank(order_.prepare().slot() * order_.prepare().ranks_per_node());
    exit.set_exit_code(kCannotStart);
    exit.set_error_message(ToValidUtf8(absl::StrCat("not started: ", ready.message())));
    *exit.mutable_time() = ToProtoTime(absl::Now());
    return End();
  }
  StartRanks(start, hosts);
  Publish();
  if (std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.running; })) {
    StopRanks(FromProtoDuration(order_.prepare().spec().grace_period()));
  }
}

absl::Status Shim::WriteGangFiles(const v1::StartSlot& start, std::vector<GangHost>* hosts) {
  ASSIGN_OR_RETURN(*hosts, GangHosts(start.gang()));
  const uint32_t per_node = order_.prepare().ranks_per_node();
  RETURN_IF_ERROR(WriteDurably(absl::StrCat(directory_.path(), "/", kHostFileName), HostFile(*hosts, per_node), 0644));
  return WriteDurably(absl::StrCat(directory_.path(), "/", kPlacementFileName), PlacementJson(start.id(), *hosts, per_node), 0644);
}

void Shim::StartRanks(const v1::StartSlot& start, const std::vector<GangHost>& hosts) {
  const v1::PrepareSlot& prepare = order_.prepare();
  ranks_.resize(ProcessesOf(prepare));
  no_children_ = false;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    rank.number = prepare.slot() * prepare.ranks_per_node() + static_cast<uint32_t>(i);
    absl::StatusOr<RankProcess> process = StartRank(prepared_.command, RankEnvironment(order_, start, hosts, static_cast<uint32_t>(i)),
                                                    prepare.spec().working_directory(), cgroup_.procs_file());
    if (!process.ok()) {
      Log(LogLevel::kError, "a rank did not start", {{"rank", absl::StrCat(rank.number)}, {"error", process.status().ToString()}});
      RecordExit(i, kCannotStart << 8);
      reply_.mutable_status()->mutable_exits()->rbegin()->set_error_message(ToValidUtf8(process.status().message()));
      continue;
    }
    rank.process = *std::move(process);
    rank.running = true;
    reply_.mutable_status()->add_pids(rank.process.pid);
    loop_.WatchReadable(rank.process.output.get(), [this, i] { OnOutput(i); });
  }
}

void Shim::OnOutput(size_t index) {
  Rank& rank = ranks_[index];
  char buffer[1 << 16];
  const ssize_t got = read(rank.process.output.get(), buffer, sizeof(buffer));
  if (got > 0) return prepared_.logs[index].Append(absl::string_view(buffer, static_cast<size_t>(got)));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  loop_.Ignore(rank.process.output.get());
  rank.process.output.Close();
}

// What a rank had written before it ended, so that its last lines are complete.
void Shim::Drain(size_t index) {
  for (size_t bytes = 0; ranks_[index].process.output.ok() && bytes < kMaxDrainBytes;) {
    const uint64_t before = prepared_.logs[index].size() + prepared_.logs[index].dropped_bytes();
    OnOutput(index);
    const uint64_t more = prepared_.logs[index].size() + prepared_.logs[index].dropped_bytes() - before;
    if (more == 0) return;
    bytes += more;
  }
}

void Shim::OnChildren() {
  // All that have ended by now ended by themselves, or were told to: one does not stop the other.
  bool failed = false, changed = false;
  while (true) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    no_children_ = pid < 0 && errno == ECHILD;
    if (pid <= 0) break;
    const auto rank = std::find_if(ranks_.begin(), ranks_.end(), [&](const Rank& r) { return r.running && r.process.pid == pid; });
    if (rank == ranks_.end()) continue;  // something that a rank had forked
    rank->running = false;
    const auto index = static_cast<size_t>(rank - ranks_.begin());
    Drain(index);
    RecordExit(index, status);
    changed = true;
    failed = failed || status != 0;
  }
  if (failed && !stopping_) StopRanks(FromProtoDuration(order_.prepare().spec().grace_period()));
  const bool over = std::none_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.running; });
  if (over && no_children_) return EndIfNothingLeft();  // one report says it all
  if (changed) Publish();
  if (over) EndIfNothingLeft();
}

void Shim::RecordExit(size_t index, int wait_status) {
  v1::RankExit& exit = *reply_.mutable_status()->add_exits();
  exit.set_rank(ranks_[index].number);
  if (WIFSIGNALED(wait_status)) {
    exit.set_signal(WTERMSIG(wait_status));
  } else {
    exit.set_exit_code(WEXITSTATUS(wait_status));
  }
  *exit.mutable_time() = ToProtoTime(absl::Now());
  exit.set_stopped(stopping_);
  for (std::string& line : prepared_.logs[index].LastLines()) exit.add_last_log_lines(std::move(line));
  if (wait_status == 0) return;
  const absl::StatusOr<std::string> error = ReadWholeFile(ErrorFile(order_, static_cast<uint32_t>(index)));
  if (error.ok()) exit.set_error_message(ErrorMessage(*error));
}

void Shim::StopRanks(absl::Duration grace) {
  if (state() != v1::SLOT_STATE_STARTED) return;
  if (!std::exchange(stopping_, true)) {
    for (const Rank& rank : ranks_) {
      if (rank.running) kill(-rank.process.pid, SIGTERM);
    }
  }
  if (sweeping_) return;  // its own patience is shorter
  // Told again: the shorter patience counts.
  loop_.Cancel(kill_timer_);
  kill_timer_ = loop_.After(grace, [this] { KillAll(); });
  EndIfNothingLeft();
}

// All that are left have a parent that is alive, up to us: without children there is nobody.
void Shim::EndIfNothingLeft() {
  if (state() != v1::SLOT_STATE_STARTED) return;
  if (std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.running; })) return;
  if (no_children_ && cgroup_.Empty()) return End();
  Sweep();
}

void Shim::Sweep() {
  if (std::exchange(sweeping_, true)) return;
  SignalAll(Descendants(getpid()), SIGTERM);
  const absl::Duration grace = FromProtoDuration(order_.prepare().spec().grace_period());
  loop_.Cancel(kill_timer_);
  kill_timer_ = loop_.After(std::min(grace, kSweepGrace), [this] { KillAll(); });
}

// Again and again, as processes may fork while they are counted, and as one in the kernel's hands dies late.
void Shim::KillAll() {
  if (state() != v1::SLOT_STATE_STARTED) return;
  cgroup_.Kill();
  SignalAll(Descendants(getpid()), SIGKILL);
  kill_pause_ = std::clamp(kill_pause_ * 2, kMinKillPause, kMaxKillPause);
  kill_timer_ = loop_.After(kill_pause_, [this] {
    OnChildren();
    KillAll();
  });
}

void Shim::SignalAll(const std::vector<pid_t>& pids, int signal_number) {
  for (const pid_t pid : pids) kill(pid, signal_number);
}

void Shim::End() {
  loop_.Cancel(kill_timer_);
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Drain(i);
    if (ranks_[i].process.output.ok()) loop_.Ignore(ranks_[i].process.output.get());
    ranks_[i].process.output.Close();
  }
  cgroup_.Remove();
  prepared_.master.reset();
  v1::SlotStatus& status = *reply_.mutable_status();
  status.set_state(v1::SLOT_STATE_ENDED);
  status.clear_pids();
  *status.mutable_end_time() = ToProtoTime(absl::Now());
  Publish();
}

}  // namespace closeknit
