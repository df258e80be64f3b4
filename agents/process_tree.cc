#include "agents/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agents/files.h"

namespace closeknit {
namespace {

std::vector<pid_t> AllProcesses() {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  while (const dirent* entry = proc == nullptr ? nullptr : readdir(proc.get())) {
    pid_t pid = 0;
    if (absl::SimpleAtoi(entry->d_name, &pid)) pids.push_back(pid);
  }
  return pids;
}

struct ProcessStat {
  char state = 'X';
  pid_t parent = 0;
};

std::optional<ProcessStat> StatOf(pid_t pid) {
  const auto stat = ReadWholeFile(absl::StrCat("/proc/", pid, "/stat"));
  if (!stat.ok()) return std::nullopt;
  // "pid (name that may hold anything) S ppid ..."
  const size_t after = stat->rfind(')');
  if (after == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields = absl::StrSplit(stat->substr(after + 1), ' ', absl::SkipEmpty());
  ProcessStat result;
  if (fields.size() < 2 || !absl::SimpleAtoi(fields[1], &result.parent)) return std::nullopt;
  result.state = fields[0][0];
  return result;
}

bool IsDead(char state) { return state == 'Z' || state == 'X'; }

struct Hierarchy {
  std::string controllers;  // "": the unified one
  std::string mount;
};

// The cgroup mounts that are worth trying, best first.
std::vector<Hierarchy> Hierarchies() {
  const auto mounts = ReadWholeFile("/proc/self/mounts");
  std::vector<Hierarchy> unified, old;
  if (!mounts.ok()) return unified;
  for (const absl::string_view line : absl::StrSplit(*mounts, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ');
    if (fields.size() < 4) continue;
    const std::vector<std::string> options = absl::StrSplit(fields[3], ',');
    if (fields[2] == "cgroup2") unified.push_back({"", fields[1]});
    for (const char* controller : {"pids", "freezer"}) {
      if (fields[2] == "cgroup" && absl::c_linear_search(options, controller)) old.push_back({controller, fields[1]});
    }
  }
  unified.insert(unified.end(), old.begin(), old.end());
  return unified;
}

// Our own group in a hierarchy, from /proc/self/cgroup's "5:pids:/path" or "0::/path".
std::optional<std::string> OwnGroup(const Hierarchy& hierarchy) {
  const auto groups = ReadWholeFile("/proc/self/cgroup");
  if (!groups.ok()) return std::nullopt;
  for (const absl::string_view line : absl::StrSplit(*groups, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    const bool found = hierarchy.controllers.empty() ? fields[0] == "0" : absl::c_linear_search(controllers, hierarchy.controllers);
    if (found) return fields[2] == "/" ? "" : fields[2];
  }
  return std::nullopt;
}

}  // namespace

SlotCgroup SlotCgroup::Create(const std::string& name) {
  for (const Hierarchy& hierarchy : Hierarchies()) {
    const std::optional<std::string> own = OwnGroup(hierarchy);
    if (!own.has_value()) continue;
    const std::string path = absl::StrCat(hierarchy.mount, *own, "/", name);
    if (mkdir(path.c_str(), 0755) != 0) continue;
    const OwnedFd procs(open((path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (procs.ok()) return SlotCgroup(path);
    rmdir(path.c_str());
  }
  return SlotCgroup("");
}

std::vector<pid_t> SlotCgroup::Members() const {
  std::vector<pid_t> members;
  if (path_.empty()) return members;
  std::error_code error;
  std::vector<std::string> groups = {path_};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_, error)) {
    if (entry.is_directory(error)) groups.push_back(entry.path());
  }
  for (const std::string& group : groups) {
    const auto procs = ReadWholeFile(group + "/cgroup.procs");
    if (!procs.ok()) continue;
    for (const absl::string_view line : absl::StrSplit(*procs, '\n', absl::SkipEmpty())) {
      pid_t pid = 0;
      if (!absl::SimpleAtoi(line, &pid) || pid <= 0) continue;
      const std::optional<ProcessStat> stat = StatOf(pid);
      if (stat.has_value() && !IsDead(stat->state)) members.push_back(pid);
    }
  }
  return members;
}

void SlotCgroup::Kill() const {
  if (path_.empty()) return;
  const OwnedFd kill_file(open((path_ + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  if (kill_file.ok() && write(kill_file.get(), "1", 1) == 1) return;
  for (const pid_t pid : Members()) kill(pid, SIGKILL);
}

void SlotCgroup::Remove() const {
  if (path_.empty()) return;
  std::error_code error;
  std::vector<std::string> groups;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_, error)) {
    if (entry.is_directory(error)) groups.push_back(entry.path());
  }
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) rmdir(group->c_str());
  rmdir(path_.c_str());
}

std::vector<pid_t> Descendants(pid_t root) {
  std::multimap<pid_t, std::pair<pid_t, char>> children;
  for (const pid_t pid : AllProcesses()) {
    const std::optional<ProcessStat> stat = StatOf(pid);
    if (stat.has_value()) children.emplace(stat->parent, std::pair(pid, stat->state));
  }
  std::vector<pid_t> found;
  std::vector<pid_t> open = {root};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [begin, end] = children.equal_range(parent);
    for (auto child = begin; child != end; ++child) {
      open.push_back(child->second.first);
      if (!IsDead(child->second.second)) found.push_back(child->second.first);
    }
  }
  return found;
}

std::vector<pid_t> ProcessesMarked(absl::string_view variable) {
  std::vector<pid_t> found;
  const std::string entry = absl::StrCat(variable, absl::string_view("\0", 1));
  for (const pid_t pid : AllProcesses()) {
    const auto environ = ReadWholeFile(absl::StrCat("/proc/", pid, "/environ"));
    if (!environ.ok()) continue;
    const bool marked = absl::StartsWith(*environ, entry) || absl::StrContains(*environ, absl::StrCat(absl::string_view("\0", 1), entry));
    if (!marked) continue;
    const std::optional<ProcessStat> stat = StatOf(pid);
    if (stat.has_value() && !IsDead(stat->state)) found.push_back(pid);
  }
  return found;
}

size_t KillLeftovers(const SlotCgroup& cgroup, absl::string_view mark) {
  size_t count = cgroup.Members().size();
  if (count > 0) cgroup.Kill();
  for (const pid_t pid : ProcessesMarked(mark)) {
    if (pid == getpid()) continue;
    kill(pid, SIGKILL);
    ++count;
  }
  return count;
}

}  // namespace closeknit
