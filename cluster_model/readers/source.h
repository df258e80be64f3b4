// Where in a file something is, what is wrong there, and the lists of names it holds. Shared by the readers.
#ifndef CLOSEKNIT_CLUSTER_MODEL_READERS_SOURCE_H_
#define CLOSEKNIT_CLUSTER_MODEL_READERS_SOURCE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace closeknit {

inline constexpr size_t kMaxDescriptionBytes = 64 << 20;
inline constexpr size_t kMaxFabricHosts = 1'000'000;

// From 1; columns count bytes.
struct Position {
  int line = 1;
  int column = 1;
};

// Collects errors, so that one reading reports them all.
class Diagnostics {
 public:
  static constexpr int kMaxReported = 20;  // more are counted

  explicit Diagnostics(absl::string_view file_name) : file_name_(file_name) {}
  void Add(Position where, absl::string_view what);
  bool empty() const { return count_ == 0; }
  int count() const { return count_; }
  // kInvalidArgument: a line "file:line:column: what" for each, in the order of the file; OK if there is none.
  absl::Status ToStatus() const;

 private:
  struct Entry {
    Position where;
    std::string what;
  };
  const std::string file_name_;
  std::vector<Entry> entries_;
  int count_ = 0;
};

// At most kMaxDescriptionBytes of UTF-8 without control characters other than line ends and tabs.
void CheckSource(absl::string_view contents, Diagnostics* diagnostics);

// Without the byte order mark that some editors put first.
absl::string_view WithoutMark(absl::string_view contents);

// Expands host lists, with a bound on the names of a whole file: a few bytes of ranges must not cost gigabytes.
class NameLists {
 public:
  static constexpr size_t kMaxNames = 2 * kMaxFabricHosts;  // all lists together, domains and hosts, duplicates too

  explicit NameLists(Diagnostics* diagnostics) : diagnostics_(diagnostics) {}
  // `where` is that of the text's first byte. nullopt: reported.
  std::optional<std::vector<std::string>> Expand(absl::string_view text, Position where);
  // The bound is reached: nothing more can be expanded.
  bool exhausted() const { return names_ > kMaxNames; }
  // For callers that know better where the error is: the offset in the text instead of a report. Reports only the bound.
  absl::StatusOr<std::vector<std::string>> Expand(absl::string_view text, Position where, size_t* error_offset);

 private:
  Diagnostics* const diagnostics_;
  size_t names_ = 0;
};

// "unknown key 'hots'; did you mean 'hosts'?", or with all known ones where none is near.
std::string Unknown(absl::string_view kind, absl::string_view name, absl::Span<const absl::string_view> known);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_READERS_SOURCE_H_
