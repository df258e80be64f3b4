#include "proto/base/proto_time.h"

namespace closeknit {
namespace {

// Splits into whole seconds towards zero and nanoseconds of the same sign.
std::pair<int64_t, int32_t> Split(absl::Duration duration) {
  const int64_t seconds = absl::IDivDuration(duration, absl::Seconds(1), &duration);
  return {seconds, static_cast<int32_t>(absl::ToInt64Nanoseconds(duration))};
}

}  // namespace

google::protobuf::Timestamp ToProtoTime(absl::Time time) {
  const int64_t seconds = absl::ToUnixSeconds(time);  // rounds down
  google::protobuf::Timestamp proto;
  proto.set_seconds(seconds);
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return proto;
}

absl::Time FromProtoTime(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

google::protobuf::Duration ToProtoDuration(absl::Duration duration) {
  const auto [seconds, nanos] = Split(duration);
  google::protobuf::Duration proto;
  proto.set_seconds(seconds);
  proto.set_nanos(nanos);
  return proto;
}

absl::Duration FromProtoDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

}  // namespace closeknit
