// Text forms that several programs take: counts, byte amounts, key=value lists, parallel dimensions. Errors (kInvalidArgument) say what is
// accepted.
#ifndef CLOSEKNIT_PROTO_BASE_TEXT_VALUES_H_
#define CLOSEKNIT_PROTO_BASE_TEXT_VALUES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "closeknit/v1/types.pb.h"

namespace closeknit {

absl::StatusOr<uint32_t> ParseCount(absl::string_view text);

// "tp=8,pp=4": pairs in the order given; keys must not repeat.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseKeyValues(absl::string_view text);

// "1.5e9", "512M", "16GiB": bytes; K, M, G, T are powers of 1000, Ki, Mi, Gi, Ti of 1024.
absl::StatusOr<double> ParseBytes(absl::string_view text);

// --parallelism "tp=8,pp=16,dp=128" (innermost first) and --bytes "pp=537M,dp=18.8G,pp_wrap=1G".
absl::StatusOr<std::vector<v1::ParallelDimension>> ParseParallelism(absl::string_view degrees, absl::string_view bytes);

}  // namespace closeknit

#endif  // CLOSEKNIT_PROTO_BASE_TEXT_VALUES_H_
