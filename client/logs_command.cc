#include "client/logs_command.h"

#include "absl/strings/str_cat.h"
#include "client/commands.h"
#include "client/flag_values.h"

namespace closeknit {
namespace {

constexpr size_t kMaxPartial = 1 << 20;  // a longer line is written in pieces

}  // namespace

void LogWriter::Line(uint32_t rank, absl::string_view line) {
  if (prefix_) *out_ << "rank " << rank << ": ";
  out_->write(line.data(), static_cast<std::streamsize>(line.size()));
  *out_ << '\n';
}

void LogWriter::Write(const v1::StreamLogsResponse& chunk) {
  if (chunk.lost_bytes() > 0) Line(chunk.rank(), absl::StrCat("[", chunk.lost_bytes(), " bytes of log were rotated away]"));
  std::string& text = partial_[{chunk.attempt(), chunk.rank()}];
  text += chunk.data();
  size_t start = 0;
  for (size_t newline; (newline = text.find('\n', start)) != std::string::npos; start = newline + 1) {
    Line(chunk.rank(), absl::string_view(text).substr(start, newline - start));
  }
  text.erase(0, start);
  if (!text.empty() && (chunk.rank_ended() || text.size() > kMaxPartial)) {
    Line(chunk.rank(), text);
    text.clear();
  }
  *out_ << std::flush;
}

void LogWriter::Finish() {
  for (auto& [key, text] : partial_) {
    if (!text.empty()) Line(key.second, text);
  }
  partial_.clear();
  *out_ << std::flush;
}

int Logs(Session& session, const LogsOptions& options) {
  const Output& output = session.output;
  const auto job = ParseJobId(options.job);
  if (!job.ok()) return Fail(output, job.status());
  v1::StreamLogsRequest request;
  request.set_job_id(*job);
  request.set_attempt(options.attempt);
  request.mutable_ranks()->Assign(options.ranks.begin(), options.ranks.end());
  request.set_follow(options.follow);
  request.set_tail_lines(options.tail_lines);
  grpc::ClientContext context;
  const auto reader = session.connection->logs().StreamLogs(&context, request);
  LogWriter writer(output.out, options.prefix);
  v1::StreamLogsResponse chunk;
  while (reader->Read(&chunk)) {
    if (output.structured())
      PrintMessage(output, chunk);
    else
      writer.Write(chunk);
  }
  writer.Finish();
  const absl::Status status = FromGrpc(reader->Finish());
  if (status.ok()) return kOk;
  // An unreachable host is the server's answer, not a missing server.
  return Fail(output, status.message().empty() ? session.connection->Explained(status) : status);
}

}  // namespace closeknit
