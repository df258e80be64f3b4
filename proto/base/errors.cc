#include "proto/base/errors.h"

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/proto_time.h"
#include "proto/base/utf8.h"

namespace closeknit {
namespace {

constexpr absl::string_view kTypePrefix = "type.googleapis.com/";

std::string TypeUrl(const google::protobuf::Message& detail) { return absl::StrCat(kTypePrefix, detail.GetDescriptor()->full_name()); }

absl::Status WithDetail(absl::Status status, const google::protobuf::Message& detail) {
  status.SetPayload(TypeUrl(detail), absl::Cord(detail.SerializeAsString()));
  return status;
}

}  // namespace

absl::Status InvalidField(absl::string_view field, absl::string_view description) {
  google::rpc::BadRequest detail;
  auto* violation = detail.add_field_violations();
  violation->set_field(std::string(field));
  violation->set_description(std::string(description));
  return WithDetail(absl::InvalidArgumentError(absl::StrCat(field, ": ", description)), detail);
}

absl::Status UnderField(absl::string_view parent, const absl::Status& status) {
  google::rpc::BadRequest detail;
  const auto payload = status.GetPayload(TypeUrl(detail));
  if (!payload.has_value() || !detail.ParseFromString(std::string(*payload))) return status;
  for (auto& violation : *detail.mutable_field_violations()) {
    violation.set_field(absl::StrCat(parent, ".", violation.field()));
  }
  absl::Status deeper(status.code(), absl::StrCat(parent, ".", status.message()));
  return WithDetail(std::move(deeper), detail);
}

absl::Status Precondition(absl::string_view type, absl::string_view subject, absl::string_view description) {
  google::rpc::PreconditionFailure detail;
  auto* violation = detail.add_violations();
  violation->set_type(std::string(type));
  violation->set_subject(std::string(subject));
  violation->set_description(std::string(description));
  return WithDetail(absl::FailedPreconditionError(description), detail);
}

absl::Status NotFound(absl::string_view reason, absl::string_view description) {
  google::rpc::ErrorInfo detail;
  detail.set_reason(std::string(reason));
  detail.set_domain("closeknit");
  return WithDetail(absl::NotFoundError(description), detail);
}

absl::Status RetryAfter(absl::Duration delay, absl::string_view description) {
  google::rpc::RetryInfo detail;
  *detail.mutable_retry_delay() = ToProtoDuration(delay);
  return WithDetail(absl::ResourceExhaustedError(description), detail);
}

google::rpc::Status ToRpcStatus(const absl::Status& status) {
  google::rpc::Status rpc;
  rpc.set_code(static_cast<int>(status.code()));
  rpc.set_message(std::string(status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& value) {
    auto* any = rpc.add_details();
    any->set_type_url(std::string(url));
    any->set_value(std::string(value));
  });
  return rpc;
}

absl::Status FromRpcStatus(const google::rpc::Status& rpc) {
  absl::Status status(static_cast<absl::StatusCode>(rpc.code()), rpc.message());
  for (const auto& any : rpc.details()) status.SetPayload(any.type_url(), absl::Cord(any.value()));
  return status;
}

namespace {

// `refused` tells which ASCII characters are not accepted.
absl::Status CheckCharacters(absl::string_view field, absl::string_view text, size_t max_bytes, bool (*refused)(unsigned char)) {
  if (text.size() > max_bytes) {
    return InvalidField(field, absl::StrCat(text.size(), " bytes; at most ", max_bytes, " are accepted"));
  }
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8Length(text.substr(i));
    if (length == 0) return InvalidField(field, absl::StrCat("not UTF-8 at byte ", i + 1));
    const unsigned char c = text[i];
    if (length == 1 && refused(c)) return InvalidField(field, absl::StrFormat("control character 0x%02x at byte %d", c, i + 1));
    i += length;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckText(absl::string_view field, absl::string_view text, size_t max_bytes) {
  return CheckCharacters(field, text, max_bytes, [](unsigned char c) { return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f; });
}

absl::Status CheckUtf8(absl::string_view field, absl::string_view text, size_t max_bytes) {
  return CheckCharacters(field, text, max_bytes, [](unsigned char c) { return c == 0; });
}

}  // namespace closeknit
