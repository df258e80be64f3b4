// LogService: what ranks wrote, read from their hosts' agents.
#ifndef CLOSEKNIT_SCHEDULER_LOG_SERVICE_H_
#define CLOSEKNIT_SCHEDULER_LOG_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "closeknit/v1/logs.grpc.pb.h"
#include "scheduler/agent_sessions.h"
#include "scheduler/read_model.h"

namespace closeknit {

class LogService : public v1::LogService::WithRawCallbackMethod_StreamLogs<v1::LogService::Service> {
 public:
  // Both outlive the service and its calls.
  LogService(ReadModel* model, AgentSessions* sessions) : model_(model), sessions_(sessions) {}
  grpc::ServerWriteReactor<grpc::ByteBuffer>* StreamLogs(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) override;

 private:
  ReadModel* const model_;
  AgentSessions* const sessions_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_LOG_SERVICE_H_
