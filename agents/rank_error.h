// Why a rank failed, in its own words: the file that torch's @record writes to TORCHELASTIC_ERROR_FILE.
#ifndef CLOSEKNIT_AGENTS_RANK_ERROR_H_
#define CLOSEKNIT_AGENTS_RANK_ERROR_H_

#include <string>

#include "absl/strings/string_view.h"

namespace closeknit {

inline constexpr size_t kMaxErrorMessageBytes = 4 << 10;

// From {"message": "text"} or {"message": {"message": "text", "extraInfo": {...}}}; empty if it is neither. At most
// kMaxErrorMessageBytes of valid UTF-8.
std::string ErrorMessage(absl::string_view json);

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_RANK_ERROR_H_
