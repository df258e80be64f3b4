// The daemons' log: one line an event on standard error, logfmt ("time=... level=info msg=\"...\" job=4711") or JSON. Thread-safe.
//
//   Log(LogLevel::kInfo, "gang started", {{"job", "4711"}, {"hosts", "8"}});
#ifndef CLOSEKNIT_PROTO_BASE_LOG_H_
#define CLOSEKNIT_PROTO_BASE_LOG_H_

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace closeknit {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

using LogField = std::pair<absl::string_view, std::string>;

// Below this level nothing is written; kInfo unless set. Set once, before threads start.
void SetLog(LogLevel minimum, LogFormat format);

void Log(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields = {});

}  // namespace closeknit

#endif  // CLOSEKNIT_PROTO_BASE_LOG_H_
