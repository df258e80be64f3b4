// Finding and killing every process of a slot: a cgroup of its own where the host lets us make one, and in any case the processes that
// descend from the supervisor (a subreaper, so that nobody escapes by daemonising) or carry the slot's mark in their environment.
#ifndef CLOSEKNIT_AGENTS_PROCESS_TREE_H_
#define CLOSEKNIT_AGENTS_PROCESS_TREE_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace closeknit {

// A control group for the slot's processes: below our own, in the unified hierarchy, else in version 1's pids or freezer.
class SlotCgroup {
 public:
  // Makes one called `name`. Without path where no hierarchy is writable: then all methods do nothing, and Empty is true.
  static SlotCgroup Create(const std::string& name);
  // One that another process has made. `path` may be empty, or gone.
  explicit SlotCgroup(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // The file to which a process writes "0" to become a member; empty if there is no cgroup.
  std::string procs_file() const { return path_.empty() ? "" : path_ + "/cgroup.procs"; }
  std::vector<pid_t> Members() const;
  bool Empty() const { return Members().empty(); }
  // SIGKILL to all, also to those that fork meanwhile where the kernel can do that (cgroup.kill); else call it again until Empty.
  void Kill() const;
  // Once empty. The slot's processes may have made groups below theirs; these go as well.
  void Remove() const;

 private:
  std::string path_;
};

// Processes below `root`, zombies not counted. One reading of /proc: O(processes of the host).
std::vector<pid_t> Descendants(pid_t root);

// Processes whose environment at their start had this "NAME=value", zombies not counted.
std::vector<pid_t> ProcessesMarked(absl::string_view variable);

// Ends all with SIGKILL that may belong to the slot of a dead supervisor: members of its cgroup and processes with its mark. Returns how
// many were there; call again until 0.
size_t KillLeftovers(const SlotCgroup& cgroup, absl::string_view mark);

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_PROCESS_TREE_H_
