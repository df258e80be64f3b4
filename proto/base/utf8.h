// Checks of UTF-8.
#ifndef CLOSEKNIT_PROTO_BASE_UTF8_H_
#define CLOSEKNIT_PROTO_BASE_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace closeknit {

// Length of the UTF-8 sequence at the text's start, 1..4; 0 if it is none (overlong forms and surrogates are none). `text` is not empty.
size_t Utf8Length(absl::string_view text);

}  // namespace closeknit

#endif  // CLOSEKNIT_PROTO_BASE_UTF8_H_
