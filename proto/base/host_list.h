// Host lists in Slurm's bracket syntax: "h[001-064,099],login1" and "p[1-2]r[01-04]".
//
// Zero padding is part of a name: h001 and h1 are two hosts, and "h[01-10]" pads to the width of its first number.
#ifndef CLOSEKNIT_PROTO_BASE_HOST_LIST_H_
#define CLOSEKNIT_PROTO_BASE_HOST_LIST_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace closeknit {

// A list may name at most this many hosts; a longer one is an error, so that "h[0-9999999999]" costs nothing.
inline constexpr size_t kMaxHostListSize = 1'000'000;

// A name longer than this is an error, as in DNS.
inline constexpr size_t kMaxHostNameLength = 253;

// Expands a list in the order written; the last bracket of a name varies fastest. Duplicates are kept. Commas and white space separate
// names outside brackets. Errors (kInvalidArgument) name the byte position (from 1) and what is wrong: unbalanced or empty brackets, a
// range that runs down, a number of more than 18 digits, an empty name, characters other than letters, digits, '-', '_', '.'.
absl::StatusOr<std::vector<std::string>> ExpandHostList(absl::string_view list);
// The same for readers of files: the message is without "host list, position N", the offset (from 0) is in *error_offset.
absl::StatusOr<std::vector<std::string>> ExpandHostList(absl::string_view list, size_t* error_offset);

// The shortest list of one bracket a name that expands to exactly these names in exactly this order.
// FoldHostList({"h1","h2","h3","h7"}) == "h[1-3,7]"; equal neighbours are kept: {"h1","h1"} gives "h[1,1]".
std::string FoldHostList(absl::Span<const std::string> hosts);

// Sorted by name with numbers compared as numbers, without duplicates, then folded: for display of sets.
std::string FoldHostSet(std::vector<std::string> hosts);

// The order of FoldHostSet: text runs compare as text, digit runs by value, then by width ("h2" < "h10" < "h010").
bool HostNameLess(absl::string_view a, absl::string_view b);

}  // namespace closeknit

#endif  // CLOSEKNIT_PROTO_BASE_HOST_LIST_H_
