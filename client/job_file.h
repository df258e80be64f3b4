// YAML job files: the fields of JobSpec by their proto names. Pure.
//
//   name: pretrain
//   nodes: 128
//   gpus_per_node: 8
//   command: [python3, train.py]
//   time_limit: 1-12:00:00          # as --time
//   parallelism: {tp: 8, pp: 16, dp: 8}
//   constraints: {required_tier: pod}
//   restart: {mode: gang, max_restarts: 5}
#ifndef CLOSEKNIT_CLIENT_JOB_FILE_H_
#define CLOSEKNIT_CLIENT_JOB_FILE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "closeknit/v1/types.pb.h"

namespace closeknit {

// Errors read "file:line:column: what": unknown keys (with a suggestion), keys given twice, values of the wrong kind. Enum values by their
// short names ("gang"), durations as --time takes them, `parallelism` as a list of messages or as the map above.
absl::StatusOr<v1::JobSpec> ReadJobFile(absl::string_view contents, absl::string_view file_name);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLIENT_JOB_FILE_H_
