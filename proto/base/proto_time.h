// absl::Time and absl::Duration to and from protobuf's.
#ifndef CLOSEKNIT_PROTO_BASE_PROTO_TIME_H_
#define CLOSEKNIT_PROTO_BASE_PROTO_TIME_H_

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace closeknit {

google::protobuf::Timestamp ToProtoTime(absl::Time time);
absl::Time FromProtoTime(const google::protobuf::Timestamp& time);  // also of the default (epoch) message: the epoch
google::protobuf::Duration ToProtoDuration(absl::Duration duration);
absl::Duration FromProtoDuration(const google::protobuf::Duration& duration);

}  // namespace closeknit

#endif  // CLOSEKNIT_PROTO_BASE_PROTO_TIME_H_
