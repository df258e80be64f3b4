// What has been committed, for readers on any thread: jobs, nodes, the fabric; and who wants to hear of changes.
//
// The commit loop publishes, everyone else reads immutable versions. Walks over all jobs or nodes let go of the lock every few thousand
// entries, so that no reader holds the loop up.
#ifndef CLOSEKNIT_SCHEDULER_READ_MODEL_H_
#define CLOSEKNIT_SCHEDULER_READ_MODEL_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "closeknit/v1/store.pb.h"
#include "closeknit/v1/types.pb.h"
#include "cluster_model/fabric.h"
#include "proto/base/mutex.h"

namespace closeknit {

struct JobVersion {
  std::shared_ptr<const v1::Job> job;
  uint32_t queue_position = 0;  // when this version was committed; 1 is next, 0: not pending
  absl::Time time;              // of its commit
};

struct FabricVersion {
  std::shared_ptr<const v1::FabricRecord> record;
  std::shared_ptr<const Fabric> fabric;
};

// Hears which keys have changed. Calls come from the commit loop's thread, without any lock of the model; they must not block.
class JobWatcher {
 public:
  virtual ~JobWatcher() = default;
  virtual void Changed(JobId job) = 0;
};
class NodeWatcher {
 public:
  virtual ~NodeWatcher() = default;
  virtual void Changed(const std::string& node) = 0;
};

class ReadModel {
 public:
  // Versions of one commit, at once.
  struct Update {
    std::vector<JobVersion> jobs;
    std::vector<JobId> purged_jobs;
    std::vector<std::shared_ptr<const v1::Node>> nodes;
    std::vector<std::string> deleted_nodes;
    std::optional<FabricVersion> fabric;
  };
  void Publish(Update update);

  std::optional<JobVersion> FindJob(JobId id) const;
  std::shared_ptr<const v1::Node> FindNode(const std::string& name) const;  // null: there is none
  std::optional<FabricVersion> fabric() const;                              // nullopt before the first topology

  // Calls `visit` for jobs with ids below `before`, newest first, for as long as it returns true. O(jobs visited).
  void VisitJobs(JobId before, const std::function<bool(const std::shared_ptr<const v1::Job>&)>& visit) const;
  // All nodes: those of the fabric in its order, then those that it no longer has, by name. O(nodes).
  std::vector<std::shared_ptr<const v1::Node>> Nodes() const;

  // Registers until the watcher's end. `jobs` empty: all. Changes after this call are heard; look at the present versions after it.
  void Watch(std::weak_ptr<JobWatcher> watcher, const std::vector<JobId>& jobs);
  void Watch(std::weak_ptr<NodeWatcher> watcher);

 private:
  std::vector<std::shared_ptr<JobWatcher>> WatchersOf(JobId job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;  // the loop writes, gRPC's threads read
  absl::btree_map<JobId, JobVersion> jobs_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::shared_ptr<const v1::Node>> nodes_ ABSL_GUARDED_BY(mutex_);
  std::optional<FabricVersion> fabric_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<JobId, std::vector<std::weak_ptr<JobWatcher>>> job_watchers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<JobWatcher>> all_jobs_watchers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<NodeWatcher>> node_watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_READ_MODEL_H_
