// Errors that name the field at fault: absl::Status whose payloads are google.rpc details.
//
// A payload's type URL is that of the Any on the wire ("type.googleapis.com/google.rpc.BadRequest"), its value the serialised message;
// the scheduler's shell turns them into the google.rpc.Status of a failed call.
#ifndef CLOSEKNIT_PROTO_BASE_ERRORS_H_
#define CLOSEKNIT_PROTO_BASE_ERRORS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace closeknit {

// kInvalidArgument with a BadRequest: "spec.nodes: 0 is too small; 1..50000". `field` is the path from the request's root.
absl::Status InvalidField(absl::string_view field, absl::string_view description);

// The same error one message deeper: "nodes: ..." under "spec" becomes "spec.nodes: ...". Other errors pass unchanged.
absl::Status UnderField(absl::string_view parent, const absl::Status& status);

// kFailedPrecondition with a PreconditionFailure, e.g. ("HOST_BUSY", "node/h1", "runs job 4711; drain it first").
absl::Status Precondition(absl::string_view type, absl::string_view subject, absl::string_view description);

// kNotFound with an ErrorInfo, e.g. ("JOB_NOT_FOUND", "no job 4711").
absl::Status NotFound(absl::string_view reason, absl::string_view description);

// kResourceExhausted with a RetryInfo.
absl::Status RetryAfter(absl::Duration delay, absl::string_view description);

// All payloads as details of one google.rpc.Status.
google::rpc::Status ToRpcStatus(const absl::Status& status);
absl::Status FromRpcStatus(const google::rpc::Status& status);

// kInvalidArgument unless `text` is UTF-8 without control characters other than `\n` and `\t`.
absl::Status CheckText(absl::string_view field, absl::string_view text, size_t max_bytes);

// The same for what a program reads, not a person: any UTF-8 without NUL.
absl::Status CheckUtf8(absl::string_view field, absl::string_view text, size_t max_bytes);

}  // namespace closeknit

#endif  // CLOSEKNIT_PROTO_BASE_ERRORS_H_
