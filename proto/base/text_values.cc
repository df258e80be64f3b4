#include "proto/base/text_values.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"

namespace closeknit {

absl::StatusOr<uint32_t> ParseCount(absl::string_view text) {
  uint32_t count = 0;
  if (absl::SimpleAtoi(text, &count)) return count;
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no whole number from 0 to 4294967295"));
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseKeyValues(absl::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const absl::string_view item : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(item, absl::MaxSplits('=', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(parts[0]);
    if (parts.size() != 2 || key.empty()) return absl::InvalidArgumentError(absl::StrCat("'", item, "' is not of the form name=value"));
    const bool repeated = std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) { return key == pair.first; });
    if (repeated) return absl::InvalidArgumentError(absl::StrCat("'", key, "' is given twice"));
    pairs.emplace_back(std::string(key), std::string(absl::StripAsciiWhitespace(parts[1])));
  }
  return pairs;
}

absl::StatusOr<double> ParseBytes(absl::string_view text) {
  absl::string_view number = absl::StripSuffix(text, "B");
  double unit = 1;
  const double base = absl::ConsumeSuffix(&number, "i") ? 1024 : 1000;
  constexpr absl::string_view kUnits = "KMGT";
  bool has_unit = false;
  if (!number.empty()) {
    const size_t power = kUnits.find(absl::ascii_toupper(number.back()));
    if (power != absl::string_view::npos) {
      unit = std::pow(base, static_cast<double>(power + 1));
      number.remove_suffix(1);
      has_unit = true;
    }
  }
  double value = 0;
  const bool valid = absl::SimpleAtod(number, &value) && std::isfinite(value) && value >= 0 && (has_unit || base == 1000);
  if (!valid) return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no number of bytes; accepted are 1.5e9, 512M, 16GiB"));
  return value * unit;
}

absl::StatusOr<std::vector<v1::ParallelDimension>> ParseParallelism(absl::string_view degrees, absl::string_view bytes) {
  std::vector<v1::ParallelDimension> dimensions;
  ASSIGN_OR_RETURN(const auto degree_pairs, ParseKeyValues(degrees));
  for (const auto& [name, value] : degree_pairs) {
    v1::ParallelDimension& dimension = dimensions.emplace_back();
    dimension.set_name(name);
    ASSIGN_OR_RETURN(const uint32_t degree, ParseCount(value));
    dimension.set_degree(degree);
  }
  ASSIGN_OR_RETURN(const auto byte_pairs, ParseKeyValues(bytes));
  for (const auto& [name, value] : byte_pairs) {
    ASSIGN_OR_RETURN(const double amount, ParseBytes(value));
    absl::string_view of = name;
    const bool wrap = absl::ConsumeSuffix(&of, "_wrap");
    const auto dimension = std::find_if(dimensions.begin(), dimensions.end(), [&](const auto& d) { return of == d.name(); });
    if (dimension == dimensions.end())
      return absl::InvalidArgumentError(absl::StrCat("bytes for '", name, "', which --parallelism does not have"));
    wrap ? dimension->set_wrap_bytes(amount) : dimension->set_bytes(amount);
  }
  return dimensions;
}

}  // namespace closeknit
