// How results are printed: the formats that every command shares.
#ifndef CLOSEKNIT_CLIENT_OUTPUT_H_
#define CLOSEKNIT_CLIENT_OUTPUT_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/format.h"
#include "google/protobuf/message.h"

namespace closeknit {

enum class OutputFormat { kText, kWide, kJson, kYaml };

struct Output {
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  OutputFormat format = OutputFormat::kText;
  bool headers = true;
  bool colour = false;    // standard output is a terminal, and NO_COLOR is not set
  bool progress = false;  // standard error is a terminal

  bool structured() const { return format == OutputFormat::kJson || format == OutputFormat::kYaml; }
  bool wide() const { return format == OutputFormat::kWide; }
};

// The message as JSON or YAML, with the protos' field names.
std::string ToJson(const google::protobuf::Message& message);
std::string ToYaml(const google::protobuf::Message& message);

void PrintMessage(const Output& output, const google::protobuf::Message& message);
void PrintTable(const Output& output, const Table& table);

// "knit: error: ..." with one line a violated field where there are several; returns the exit code.
int Fail(const Output& output, const absl::Status& status);

// A state in its colour, where colours are on. To be used where columns do not matter.
std::string Coloured(const Output& output, v1::JobState state);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLIENT_OUTPUT_H_
