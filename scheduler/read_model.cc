#include "scheduler/read_model.h"

#include <algorithm>
#include <utility>

namespace closeknit {
namespace {

constexpr int kVisitStride = 4'096;  // jobs visited under one hold of the lock

// The watchers that still live; forgets the others.
template <typename Watcher>
void Collect(std::vector<std::weak_ptr<Watcher>>* watchers, std::vector<std::shared_ptr<Watcher>>* live) {
  std::erase_if(*watchers, [live](const std::weak_ptr<Watcher>& weak) {
    std::shared_ptr<Watcher> watcher = weak.lock();
    if (watcher == nullptr) return true;
    live->push_back(std::move(watcher));
    return false;
  });
}

}  // namespace

std::vector<std::shared_ptr<JobWatcher>> ReadModel::WatchersOf(JobId job) {
  std::vector<std::shared_ptr<JobWatcher>> live;
  const auto found = job_watchers_.find(job);
  if (found == job_watchers_.end()) return live;
  Collect(&found->second, &live);
  if (found->second.empty()) job_watchers_.erase(found);
  return live;
}

void ReadModel::Publish(Update update) {
  std::vector<std::pair<std::shared_ptr<JobWatcher>, JobId>> jobs_heard;
  std::vector<std::shared_ptr<JobWatcher>> all_jobs;
  std::vector<std::shared_ptr<NodeWatcher>> all_nodes;
  std::vector<JobId> changed_jobs;
  std::vector<std::string> changed_nodes = std::move(update.deleted_nodes);
  {
    MutexLock lock(&mutex_);
    for (const std::string& name : changed_nodes) nodes_.erase(name);
    for (const JobId id : update.purged_jobs) {
      jobs_.erase(id);
      job_watchers_.erase(id);
    }
    for (JobVersion& version : update.jobs) {
      const JobId id = version.job->job_id();
      changed_jobs.push_back(id);
      jobs_[id] = std::move(version);
      if (job_watchers_.empty()) continue;
      for (std::shared_ptr<JobWatcher>& watcher : WatchersOf(id)) jobs_heard.emplace_back(std::move(watcher), id);
    }
    for (std::shared_ptr<const v1::Node>& node : update.nodes) {
      changed_nodes.push_back(node->name());
      nodes_[node->name()] = std::move(node);
    }
    if (update.fabric.has_value()) fabric_ = std::move(update.fabric);
    if (!changed_jobs.empty()) Collect(&all_jobs_watchers_, &all_jobs);
    if (!changed_nodes.empty()) Collect(&node_watchers_, &all_nodes);
  }
  for (const auto& [watcher, id] : jobs_heard) watcher->Changed(id);
  for (const auto& watcher : all_jobs) {
    for (const JobId id : changed_jobs) watcher->Changed(id);
  }
  for (const auto& watcher : all_nodes) {
    for (const std::string& name : changed_nodes) watcher->Changed(name);
  }
}

std::optional<JobVersion> ReadModel::FindJob(JobId id) const {
  MutexLock lock(&mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return std::nullopt;
  return found->second;
}

std::shared_ptr<const v1::Node> ReadModel::FindNode(const std::string& name) const {
  MutexLock lock(&mutex_);
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : found->second;
}

std::optional<FabricVersion> ReadModel::fabric() const {
  MutexLock lock(&mutex_);
  return fabric_;
}

void ReadModel::VisitJobs(JobId before, const std::function<bool(const std::shared_ptr<const v1::Job>&)>& visit) const {
  std::vector<std::shared_ptr<const v1::Job>> stride;
  do {
    stride.clear();
    {
      MutexLock lock(&mutex_);
      for (auto at = jobs_.lower_bound(before); at != jobs_.begin() && stride.size() < kVisitStride;) stride.push_back((--at)->second.job);
    }
    for (const auto& job : stride) {
      if (!visit(job)) return;
      before = job->job_id();
    }
  } while (!stride.empty());
}

std::vector<std::shared_ptr<const v1::Node>> ReadModel::Nodes() const {
  std::vector<std::shared_ptr<const v1::Node>> nodes, others;
  std::shared_ptr<const Fabric> fabric;
  {
    MutexLock lock(&mutex_);
    nodes.reserve(nodes_.size());
    if (fabric_.has_value()) {
      fabric = fabric_->fabric;
      for (const Host& host : fabric->hosts()) {
        const auto found = nodes_.find(host.name);
        if (found != nodes_.end()) nodes.push_back(found->second);
      }
    }
    if (nodes.size() == nodes_.size()) return nodes;
    for (const auto& [name, node] : nodes_) {
      if (fabric == nullptr || !fabric->FindHost(name).has_value()) others.push_back(node);
    }
  }
  std::sort(others.begin(), others.end(), [](const auto& a, const auto& b) { return a->name() < b->name(); });
  nodes.insert(nodes.end(), others.begin(), others.end());
  return nodes;
}

void ReadModel::Watch(std::weak_ptr<JobWatcher> watcher, const std::vector<JobId>& jobs) {
  MutexLock lock(&mutex_);
  if (jobs.empty()) all_jobs_watchers_.push_back(watcher);
  for (const JobId job : jobs) job_watchers_[job].push_back(watcher);
}

void ReadModel::Watch(std::weak_ptr<NodeWatcher> watcher) {
  MutexLock lock(&mutex_);
  node_watchers_.push_back(std::move(watcher));
}

}  // namespace closeknit
