#include "scheduler/metrics.h"

#include "closeknit/v1/types.pb.h"

namespace closeknit {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using Buckets = prometheus::Histogram::BucketBoundaries;

// Seconds; a synced commit takes 0.3 ms on a fast disk, seconds on one that is in trouble.
const Buckets kCommitBuckets = {0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5};
const Buckets kBatchBuckets = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048};
// Seconds from submit to hosts: milliseconds on an idle cluster, days in a full one.
const Buckets kQueueBuckets = {0.01, 0.1, 1, 10, 60, 600, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600};

prometheus::Counter* Counter(prometheus::Registry& registry, const std::string& name, const std::string& help) {
  return &BuildCounter().Name(name).Help(help).Register(registry).Add({});
}
prometheus::Gauge* Gauge(prometheus::Registry& registry, const std::string& name, const std::string& help) {
  return &BuildGauge().Name(name).Help(help).Register(registry).Add({});
}
prometheus::Histogram* Histogram(prometheus::Registry& registry, const std::string& name, const std::string& help, const Buckets& buckets) {
  return &BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets);
}

}  // namespace

Metrics::Metrics() {
  prometheus::Registry& registry = *registry_;
  commit_seconds_ = Histogram(registry, "knit_commit_seconds", "Time of one synced commit to the store.", kCommitBuckets);
  commit_events_ = Histogram(registry, "knit_commit_batch_events", "Events that share one commit.", kBatchBuckets);
  committed_records_ = Counter(registry, "knit_committed_records_total", "Records written to the store.");
  store_failures_ = Counter(registry, "knit_store_failures_total", "Commits that the store refused.");
  jobs_submitted_ = Counter(registry, "knit_jobs_submitted_total", "Jobs accepted; each task of an array is one.");
  gangs_started_ = Counter(registry, "knit_gangs_started_total", "Attempts of which every rank was started.");
  jobs_ended_ = &BuildCounter().Name("knit_jobs_ended_total").Help("Jobs that ended, by cause.").Register(registry);
  prepare_failures_ = Counter(registry, "knit_prepare_failures_total", "Hosts that could not prepare their part of a gang.");
  restarts_ = Counter(registry, "knit_restarts_total", "Further attempts of gangs that failed.");
  refused_reports_ = Counter(registry, "knit_refused_reports_total", "Agents' reports that fit nothing the scheduler knows.");
  queue_seconds_ = Histogram(registry, "knit_queue_seconds", "Time from submit to the choice of hosts.", kQueueBuckets);
  agents_ = Gauge(registry, "knit_agents_connected", "Agents with a live stream.");
  term_ = Gauge(registry, "knit_term", "Term of this scheduler's leadership.");
  BuildGauge()
      .Name("knit_build_info")
      .Help("1; the program's version as a label.")
      .Register(registry)
      .Add({{"version", CLOSEKNIT_VERSION}})
      .Set(1);
}

void Metrics::Committed(size_t events, size_t writes, absl::Duration elapsed) {
  commit_seconds_->Observe(absl::ToDoubleSeconds(elapsed));
  commit_events_->Observe(static_cast<double>(events));
  committed_records_->Increment(static_cast<double>(writes));
}

void Metrics::Note(const Notice& notice) {
  switch (notice.kind) {
    case Notice::Kind::kJobSubmitted:
      return jobs_submitted_->Increment();
    case Notice::Kind::kJobPlaced:
      return queue_seconds_->Observe(absl::ToDoubleSeconds(notice.elapsed));
    case Notice::Kind::kGangStarted:
      return gangs_started_->Increment();
    case Notice::Kind::kJobEnded:
      return jobs_ended_->Add({{"cause", notice.detail}}).Increment();
    case Notice::Kind::kPrepareFailed:
      return prepare_failures_->Increment();
    case Notice::Kind::kRestart:
      return restarts_->Increment();
    case Notice::Kind::kRefusedReport:
      return refused_reports_->Increment();
    case Notice::Kind::kNodeState:
      return;
  }
}

void Metrics::SetAgents(size_t connected) { agents_->Set(static_cast<double>(connected)); }
void Metrics::SetTerm(uint64_t term) { term_->Set(static_cast<double>(term)); }
void Metrics::StoreFailed() { store_failures_->Increment(); }

}  // namespace closeknit
