// The daemon's Prometheus metrics.
#ifndef CLOSEKNIT_SCHEDULER_METRICS_H_
#define CLOSEKNIT_SCHEDULER_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "scheduler/core/events.h"

namespace closeknit {

class Metrics {
 public:
  Metrics();

  void Committed(size_t events, size_t writes, absl::Duration elapsed);
  void Note(const Notice& notice);
  void SetAgents(size_t connected);
  void SetTerm(uint64_t term);
  void StoreFailed();

  const std::shared_ptr<prometheus::Registry>& registry() const { return registry_; }

 private:
  std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  prometheus::Histogram* commit_seconds_;
  prometheus::Histogram* commit_events_;
  prometheus::Counter* committed_records_;
  prometheus::Counter* store_failures_;
  prometheus::Counter* jobs_submitted_;
  prometheus::Counter* gangs_started_;
  prometheus::Family<prometheus::Counter>* jobs_ended_;
  prometheus::Counter* prepare_failures_;
  prometheus::Counter* restarts_;
  prometheus::Counter* refused_reports_;
  prometheus::Histogram* queue_seconds_;
  prometheus::Gauge* agents_;
  prometheus::Gauge* term_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_METRICS_H_
