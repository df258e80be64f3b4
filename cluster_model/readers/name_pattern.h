// A host list with placeholders for the domains above: "{pod}r[001-192]", "p{pod#}-[1-8]".
#ifndef CLOSEKNIT_CLUSTER_MODEL_READERS_NAME_PATTERN_H_
#define CLOSEKNIT_CLUSTER_MODEL_READERS_NAME_PATTERN_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster_model/ids.h"
#include "cluster_model/readers/source.h"

namespace closeknit {

class NamePattern {
 public:
  static constexpr size_t kMaxBytes = 4096;

  // `tiers` are those that the pattern may refer to, with their names. nullopt: reported.
  static std::optional<NamePattern> Parse(absl::string_view text, Position where,
                                          absl::Span<const std::pair<absl::string_view, Tier>> tiers, Diagnostics* diagnostics);

  // The lowest tier referred to; nullopt: none.
  std::optional<Tier> lowest_tier() const { return lowest_tier_; }

  // Names with "{tier}" standing for name_of(tier), and "{tier#}" for the digits at its end. nullopt: reported. Never empty.
  std::optional<std::vector<std::string>> Expand(const std::function<absl::string_view(Tier)>& name_of, NameLists* lists,
                                                 Diagnostics* diagnostics) const;

  Position where() const { return where_; }

 private:
  struct Piece {
    std::string text;  // as written
    size_t offset = 0;
    Tier tier = 0;  // 0: plain text
    bool number = false;
  };

  Position At(size_t offset) const { return {where_.line, where_.column + static_cast<int>(offset)}; }

  Position where_;
  std::vector<Piece> pieces_;
  std::optional<Tier> lowest_tier_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_READERS_NAME_PATTERN_H_
