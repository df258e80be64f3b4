// Carries committed effects out: to readers, to agents' streams, to the log and the metrics.
#ifndef CLOSEKNIT_SCHEDULER_PUBLISHER_H_
#define CLOSEKNIT_SCHEDULER_PUBLISHER_H_

#include <optional>

#include "scheduler/agent_sessions.h"
#include "scheduler/commit_loop.h"
#include "scheduler/metrics.h"
#include "scheduler/read_model.h"

namespace closeknit {

class Publisher : public EffectSink {
 public:
  // Both outlive it. Sessions come later: they need the loop, which needs this.
  Publisher(ReadModel* model, Metrics* metrics) : model_(model), metrics_(metrics) {}
  void SetSessions(AgentSessions* sessions) { sessions_ = sessions; }

  void LetOut(Effects effects, const Core& core, absl::Time now) override;
  void Restored(Effects effects, const Core& core, const std::optional<v1::FabricRecord>& fabric, absl::Time now) override;
  void StoreFailed(const absl::Status& status) override;
  void Refuse(SessionId session, const absl::Status& status) override;
  void Committed(size_t events, size_t writes, absl::Duration elapsed) override;

 private:
  ReadModel* const model_;
  Metrics* const metrics_;
  AgentSessions* sessions_ = nullptr;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_PUBLISHER_H_
