#include "cluster_model/readers/source.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "proto/base/host_list.h"
#include "proto/base/utf8.h"

namespace closeknit {
namespace {

// Levenshtein distance without regard to case. Names are short: O(|a| * |b|) of at most 64 each.
int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substituted = diagonal + (absl::ascii_tolower(a[i - 1]) == absl::ascii_tolower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

void Diagnostics::Add(Position where, absl::string_view what) {
  if (count_++ < kMaxReported) entries_.push_back({where, std::string(what)});
}

absl::Status Diagnostics::ToStatus() const {
  if (count_ == 0) return absl::OkStatus();
  std::vector<Entry> sorted = entries_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.where.line, a.where.column) < std::tie(b.where.line, b.where.column);
  });
  std::string text = absl::StrJoin(sorted, "\n", [this](std::string* out, const Entry& entry) {
    absl::StrAppend(out, file_name_, ":", entry.where.line, ":", entry.where.column, ": ", entry.what);
  });
  if (count_ > kMaxReported) absl::StrAppend(&text, "\n", file_name_, ": and ", count_ - kMaxReported, " more errors");
  return absl::InvalidArgumentError(text);
}

void CheckSource(absl::string_view contents, Diagnostics* diagnostics) {
  if (contents.size() > kMaxDescriptionBytes) {
    diagnostics->Add({}, absl::StrCat("the description has ", contents.size(), " bytes; at most ", kMaxDescriptionBytes, " are read"));
    return;
  }
  Position at;
  for (size_t i = 0; i < contents.size();) {
    const size_t length = Utf8Length(contents.substr(i));
    const unsigned char c = contents[i];
    if (length == 0) return diagnostics->Add(at, absl::StrFormat("byte 0x%02x is not UTF-8; save the file as UTF-8", c));
    if ((c < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0x7f) {
      return diagnostics->Add(at, absl::StrFormat("control character 0x%02x; a description is plain text", c));
    }
    i += length;
    at.column += static_cast<int>(length);
    if (c == '\n') at = {at.line + 1, 1};
  }
}

absl::string_view WithoutMark(absl::string_view contents) { return absl::StripPrefix(contents, "\xef\xbb\xbf"); }

absl::StatusOr<std::vector<std::string>> NameLists::Expand(absl::string_view text, Position where, size_t* error_offset) {
  absl::StatusOr<std::vector<std::string>> names = ExpandHostList(text, error_offset);
  if (!names.ok()) return names;
  const bool was_exhausted = exhausted();
  names_ += names->size();
  if (exhausted() && !was_exhausted) {
    diagnostics_->Add(where, absl::StrCat("the description names more than ", kMaxNames, " domains and hosts; a fabric has at most ",
                                          kMaxFabricHosts, " hosts"));
  }
  return names;
}

std::optional<std::vector<std::string>> NameLists::Expand(absl::string_view text, Position where) {
  if (exhausted()) return std::nullopt;
  size_t offset = 0;
  absl::StatusOr<std::vector<std::string>> names = Expand(text, where, &offset);
  if (!names.ok()) {
    diagnostics_->Add({where.line, where.column + static_cast<int>(offset)}, names.status().message());
    return std::nullopt;
  }
  if (exhausted()) return std::nullopt;
  return *std::move(names);
}

std::string Unknown(absl::string_view kind, absl::string_view name, absl::Span<const absl::string_view> known) {
  constexpr size_t kShown = 64;
  std::string text = absl::StrCat("unknown ", kind, " '", name.substr(0, kShown), name.size() > kShown ? "..." : "", "'; ");
  absl::string_view nearest;
  int least = 3;  // more than two slips are another word
  for (const absl::string_view candidate : known) {
    if (name.size() > kShown) break;
    const int distance = EditDistance(name, candidate);
    if (distance < least && distance < static_cast<int>(candidate.size())) {
      least = distance;
      nearest = candidate;
    }
  }
  if (nearest.empty()) return absl::StrCat(text, "known: ", absl::StrJoin(known, ", "));
  return absl::StrCat(text, "did you mean '", nearest, "'?");
}

}  // namespace closeknit
