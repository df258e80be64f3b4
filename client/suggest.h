// "Did you mean ...?"
#ifndef CLOSEKNIT_CLIENT_SUGGEST_H_
#define CLOSEKNIT_CLIENT_SUGGEST_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace closeknit {

// The candidate nearest to `word` by edit distance, if it is near enough to be what was meant; else empty.
std::string Nearest(absl::string_view word, absl::Span<const std::string> candidates);

// "; did you mean 'nodes'?" or empty.
std::string DidYouMean(absl::string_view word, absl::Span<const std::string> candidates);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLIENT_SUGGEST_H_
