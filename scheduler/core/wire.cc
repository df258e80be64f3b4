#include "scheduler/core/wire.h"

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"

namespace closeknit {
namespace {

void Append(const google::protobuf::MessageLite& message, std::string* bytes) {
  google::protobuf::io::StringOutputStream stream(bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  message.SerializeWithCachedSizes(&out);
}

}  // namespace

std::string DeterministicBytes(const google::protobuf::MessageLite& message) {
  std::string bytes;
  bytes.reserve(message.ByteSizeLong());  // ByteSizeLong also caches the sizes that Append uses
  Append(message, &bytes);
  return bytes;
}

std::string JobRecordBytes(const v1::JobRecord& record_without_job, const v1::Job& job) {
  // Field 1, length-delimited, then the other fields: the order on the wire does not matter to parsers.
  using google::protobuf::internal::WireFormatLite;
  const size_t job_size = job.ByteSizeLong(), rest_size = record_without_job.ByteSizeLong();
  std::string bytes;
  bytes.reserve(job_size + rest_size + 11);
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.WriteTag(WireFormatLite::MakeTag(v1::JobRecord::kJobFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
    out.WriteVarint32(static_cast<uint32_t>(job_size));
  }
  Append(job, &bytes);
  Append(record_without_job, &bytes);
  return bytes;
}

uint64_t Fingerprint(absl::string_view bytes) {
  uint64_t hash = 14695981039346656037u;
  for (const unsigned char c : bytes) hash = (hash ^ c) * 1099511628211u;
  return hash;
}

}  // namespace closeknit
