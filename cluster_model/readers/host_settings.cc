#include "cluster_model/readers/host_settings.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace closeknit {
namespace {

constexpr absl::string_view kDirective = "#closeknit:";
constexpr absl::string_view kKeys[] = {"gpus", "rails", "nics", "hosts"};

// One "key=value" of a directive.
void ApplySetting(absl::string_view setting, Position at, NameLists* names, ForeignSettings* settings, Diagnostics* diagnostics) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(setting, absl::MaxSplits('=', 1));
  const auto& [key, value] = parts;
  int number = 0;
  if (key == "gpus") {
    if (!absl::SimpleAtoi(value, &number) || number < 1 || number > kMaxHostGpus) {
      return diagnostics->Add(at, absl::StrCat("gpus=", value, " is not accepted; 1..", kMaxHostGpus));
    }
    settings->host.gpus = number;
  } else if (key == "rails") {
    if (!absl::SimpleAtoi(value, &number) || number < 0 || number > kMaxHostRails) {
      return diagnostics->Add(at, absl::StrCat("rails=", value, " is not accepted; 0 (not stated)..", kMaxHostRails));
    }
    settings->host.rails = number;
  } else if (key == "nics") {
    const std::optional<Uplinks> links = ParseLinks(value);
    if (!links.has_value()) return diagnostics->Add(at, absl::StrCat("nics=", value, " is not accepted; ", kLinksForm));
    settings->host.nics = *links;
  } else if (key == "hosts") {
    const std::optional<std::vector<std::string>> list = names->Expand(value, {at.line, at.column + static_cast<int>(key.size()) + 1});
    if (!list.has_value()) return;
    if (!settings->hosts.has_value()) settings->hosts.emplace();
    settings->hosts_at = at;
    settings->hosts->insert(list->begin(), list->end());
  } else {
    diagnostics->Add(at, Unknown("setting", key, kKeys));
  }
}

}  // namespace

std::optional<Uplinks> ParseLinks(absl::string_view text) {
  const size_t times = text.find('x');
  if (times == text.npos) return std::nullopt;
  Uplinks links;
  const absl::string_view gbps = text.substr(times + 1);
  if (gbps.empty() || !absl::ascii_isdigit(gbps[0])) return std::nullopt;  // no sign, no "inf"
  if (!absl::SimpleAtoi(text.substr(0, times), &links.count) || !absl::SimpleAtod(gbps, &links.gbps)) return std::nullopt;
  const bool in_range = links.count >= 1 && links.count <= 65536 && std::isfinite(links.gbps) && links.gbps > 0 && links.gbps <= 1e6;
  return in_range ? std::make_optional(links) : std::nullopt;
}

ForeignSettings ReadForeignSettings(absl::string_view contents, NameLists* names, Diagnostics* diagnostics) {
  ForeignSettings settings;
  settings.host.rails = 0;
  int line = 0;
  for (const absl::string_view text : absl::StrSplit(contents, '\n')) {
    ++line;
    const absl::string_view trimmed = absl::StripAsciiWhitespace(text);
    if (!absl::StartsWith(trimmed, kDirective)) continue;
    for (const absl::string_view setting : absl::StrSplit(trimmed.substr(kDirective.size()), absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
      ApplySetting(setting, {line, static_cast<int>(setting.data() - text.data()) + 1}, names, &settings, diagnostics);
    }
  }
  return settings;
}

}  // namespace closeknit
