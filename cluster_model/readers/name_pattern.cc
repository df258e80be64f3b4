#include "cluster_model/readers/name_pattern.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace closeknit {
namespace {

absl::string_view TrailingDigits(absl::string_view name) {
  size_t begin = name.size();
  while (begin > 0 && absl::ascii_isdigit(name[begin - 1])) --begin;
  return name.substr(begin);
}

}  // namespace

std::optional<NamePattern> NamePattern::Parse(absl::string_view text, Position where,
                                              absl::Span<const std::pair<absl::string_view, Tier>> tiers, Diagnostics* diagnostics) {
  NamePattern pattern;
  pattern.where_ = where;
  if (text.size() > kMaxBytes) {
    diagnostics->Add(where, absl::StrCat("a list of ", text.size(), " bytes; at most ", kMaxBytes, ", use ranges such as h[1-64]"));
    return std::nullopt;
  }
  for (size_t offset = 0; offset < text.size();) {
    const size_t open = std::min(text.find('{', offset), text.size());
    if (open > offset) pattern.pieces_.push_back({std::string(text.substr(offset, open - offset)), offset});
    if (open == text.size()) break;
    const size_t close = text.find('}', open);
    if (close == text.npos) {
      diagnostics->Add(pattern.At(open), "'{' without its '}'; a placeholder is {TIER}, e.g. {rack}");
      return std::nullopt;
    }
    Piece piece{std::string(text.substr(open, close + 1 - open)), open};
    absl::string_view name = text.substr(open + 1, close - open - 1);
    piece.number = absl::ConsumeSuffix(&name, "#");
    std::vector<absl::string_view> known;
    for (const auto& [tier_name, tier] : tiers) {
      known.push_back(tier_name);
      if (tier_name == name) piece.tier = tier;
    }
    if (piece.tier == 0) {
      diagnostics->Add(pattern.At(open), known.empty() ? absl::StrCat("placeholder '", piece.text, "': no domain is given above this one")
                                                       : Unknown("placeholder", name, known));
      return std::nullopt;
    }
    pattern.lowest_tier_ = std::min(pattern.lowest_tier_.value_or(piece.tier), piece.tier);
    pattern.pieces_.push_back(std::move(piece));
    offset = close + 1;
  }
  return pattern;
}

std::optional<std::vector<std::string>> NamePattern::Expand(const std::function<absl::string_view(Tier)>& name_of, NameLists* lists,
                                                            Diagnostics* diagnostics) const {
  if (lists->exhausted()) return std::nullopt;
  std::string text;
  std::vector<size_t> starts;  // of each piece in text
  for (const Piece& piece : pieces_) {
    starts.push_back(text.size());
    if (piece.tier == 0) {
      text += piece.text;
      continue;
    }
    const absl::string_view name = name_of(piece.tier);
    const absl::string_view inserted = piece.number ? TrailingDigits(name) : name;
    if (inserted.empty()) {
      diagnostics->Add(At(piece.offset), absl::StrCat("placeholder '", piece.text, "': '", name, "' does not end in a number"));
      return std::nullopt;
    }
    absl::StrAppend(&text, inserted);
  }
  size_t offset = 0;
  absl::StatusOr<std::vector<std::string>> names = lists->Expand(text, where_, &offset);
  if (!names.ok()) {
    size_t i = pieces_.size() - 1;
    while (i > 0 && starts[i] > offset) --i;
    const size_t within = pieces_[i].tier == 0 ? offset - starts[i] : 0;
    diagnostics->Add(At(pieces_[i].offset + within), names.status().message());
    return std::nullopt;
  }
  if (lists->exhausted()) return std::nullopt;
  if (names->empty()) {
    diagnostics->Add(where_, "the list is empty; name one at least, e.g. h[1-4]");
    return std::nullopt;
  }
  return *std::move(names);
}

}  // namespace closeknit
