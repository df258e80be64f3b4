// Messages as bytes that are the same on every run and machine.
#ifndef CLOSEKNIT_SCHEDULER_CORE_WIRE_H_
#define CLOSEKNIT_SCHEDULER_CORE_WIRE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "closeknit/v1/store.pb.h"
#include "google/protobuf/message_lite.h"

namespace closeknit {

// Maps in key order.
std::string DeterministicBytes(const google::protobuf::MessageLite& message);

// A JobRecord whose `job` is held apart from the other fields.
std::string JobRecordBytes(const v1::JobRecord& record_without_job, const v1::Job& job);

// FNV-1a: stored with request ids, so it never changes.
uint64_t Fingerprint(absl::string_view bytes);

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_CORE_WIRE_H_
