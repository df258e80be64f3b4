// Slurm's topology.conf: a switch a line, "SwitchName=s1 Nodes=h[1-4]" or "SwitchName=s0 Switches=s[1-2]".
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cluster_model/readers/formats.h"
#include "cluster_model/readers/host_settings.h"
#include "cluster_model/readers/switch_tree.h"

namespace closeknit {
namespace {

constexpr absl::string_view kKeys[] = {"SwitchName", "Switches", "Nodes", "LinkSpeed"};

// A line with its continuations ("...\" at the end), comments taken out.
struct LogicalLine {
  std::string text;
  std::vector<std::pair<size_t, Position>> pieces;  // offset in text of each physical line, and where that is

  Position At(size_t offset) const {
    size_t i = pieces.size() - 1;
    while (i > 0 && pieces[i].first > offset) --i;
    return {pieces[i].second.line, pieces[i].second.column + static_cast<int>(offset - pieces[i].first)};
  }
};

class ConfReader {
 public:
  ConfReader(absl::string_view contents, NameLists* names, Diagnostics* diagnostics)
      : rest_(contents), diagnostics_(diagnostics), names_(names) {}

  std::vector<SwitchEntry> Read() {
    while (!rest_.empty() && !names_->exhausted()) ReadLine(NextLine());
    return std::move(switches_);
  }

 private:
  struct Setting {
    absl::string_view key, value;
    Position key_at, value_at;
    size_t value_offset = 0;  // in the line's text
  };

  // The text of one physical line before '#' ("\#" is a '#').
  void AppendWithoutComment(absl::string_view physical, LogicalLine* line) {
    for (size_t i = 0; i < physical.size(); ++i) {
      if (physical[i] == '\\' && i + 1 < physical.size() && physical[i + 1] == '#') {
        line->text += '#';
        line->pieces.push_back({line->text.size(), {line_, static_cast<int>(i) + 3}});
        ++i;
      } else if (physical[i] == '#') {
        return;
      } else {
        line->text += physical[i];
      }
    }
  }

  LogicalLine NextLine() {
    LogicalLine line;
    bool continues = true;
    while (continues && !rest_.empty()) {
      ++line_;
      const size_t end = rest_.find('\n');
      const absl::string_view physical = rest_.substr(0, end);
      rest_ = end == rest_.npos ? absl::string_view() : rest_.substr(end + 1);
      line.pieces.push_back({line.text.size(), {line_, 1}});
      AppendWithoutComment(physical, &line);
      absl::StripTrailingAsciiWhitespace(&line.text);
      continues = absl::EndsWith(line.text, "\\");
      if (continues) line.text.pop_back();
    }
    return line;
  }

  void ReadLine(const LogicalLine& line) {
    const int errors = diagnostics_->count();
    SwitchEntry entry;
    bool any = false, named = false;
    std::vector<absl::string_view> seen;
    for (size_t offset = 0;;) {
      std::optional<Setting> setting = NextSetting(line, &offset);
      if (!setting.has_value()) break;
      any = true;
      for (const absl::string_view key : seen) {
        if (absl::EqualsIgnoreCase(key, setting->key)) {
          diagnostics_->Add(setting->key_at, absl::StrCat(setting->key, " is there twice in one line; join the lists with a comma"));
        }
      }
      seen.push_back(setting->key);
      if (absl::EqualsIgnoreCase(setting->key, "SwitchName")) named = true;
      Apply(line, *setting, &entry);
    }
    if (!any) return;
    if (!named) {
      diagnostics_->Add(line.At(line.text.find_first_not_of(" \t\r")), "a line without SwitchName=; each line describes one switch");
      return;
    }
    if (!entry.nodes.empty() && !entry.switches.empty()) {
      diagnostics_->Add(entry.at, absl::StrCat("switch ", entry.name, " has both Switches= and Nodes=; put the nodes below a leaf switch"));
    }
    if (entry.nodes.empty() && entry.switches.empty() && diagnostics_->count() == errors) {
      diagnostics_->Add(entry.at, absl::StrCat("switch ", entry.name, " has no children; give it Nodes= or Switches="));
    }
    switches_.push_back(std::move(entry));
  }

  // The next "key = value" from *offset on; nullopt at the end, or after an error that makes the rest of the line unreadable.
  std::optional<Setting> NextSetting(const LogicalLine& line, size_t* offset) {
    const absl::string_view text = line.text;
    const auto skip_space = [&](size_t at) {
      while (at < text.size() && absl::ascii_isspace(text[at])) ++at;
      return at;
    };
    Setting setting;
    const size_t key = skip_space(*offset);
    if (key == text.size()) return std::nullopt;
    size_t end = key;
    while (end < text.size() && !absl::ascii_isspace(text[end]) && text[end] != '=') ++end;
    setting.key = text.substr(key, end - key);
    setting.key_at = line.At(key);
    size_t value = skip_space(end);
    if (value == text.size() || text[value] != '=' || setting.key.empty()) {
      diagnostics_->Add(setting.key_at, absl::StrCat("'", setting.key.empty() ? text.substr(key, 1) : setting.key,
                                                     "' is not KEY=VALUE; e.g. SwitchName=s1 Nodes=h[1-4]"));
      *offset = text.size();
      return std::nullopt;
    }
    value = skip_space(value + 1);
    if (value < text.size() && text[value] == '"') {
      end = text.find('"', ++value);
      if (end == text.npos) {
        diagnostics_->Add(line.At(value - 1), "a quote that does not end; add '\"'");
        *offset = text.size();
        return std::nullopt;
      }
      *offset = end + 1;
    } else {
      end = value;
      while (end < text.size() && !absl::ascii_isspace(text[end])) ++end;
      *offset = end;
    }
    setting.value = text.substr(value, end - value);
    setting.value_at = line.At(value);
    setting.value_offset = value;
    return setting;
  }

  void Apply(const LogicalLine& line, const Setting& setting, SwitchEntry* entry) {
    if (absl::EqualsIgnoreCase(setting.key, "SwitchName")) {
      entry->at = setting.value_at;
      std::optional<std::vector<std::string>> names = Names(line, setting);
      if (!names.has_value()) return;
      if (names->size() != 1) {
        return diagnostics_->Add(setting.value_at,
                                 absl::StrCat("SwitchName=", setting.value, " names ", names->size(), " switches; one line each"));
      }
      entry->name = std::move(names->front());
    } else if (absl::EqualsIgnoreCase(setting.key, "Switches")) {
      entry->switches_at = setting.value_at;
      entry->switches = Children(line, setting);
    } else if (absl::EqualsIgnoreCase(setting.key, "Nodes")) {
      entry->nodes_at = setting.value_at;
      entry->nodes = Children(line, setting);
    } else if (absl::StartsWithIgnoreCase(setting.key, "Block")) {
      diagnostics_->Add(setting.key_at, absl::StrCat(setting.key, " is of topology/block; describe the tree of switches with SwitchName="));
    } else if (!absl::EqualsIgnoreCase(setting.key, "LinkSpeed")) {  // Slurm does not use it either
      diagnostics_->Add(setting.key_at, Unknown("key", setting.key, kKeys));
    }
  }

  // nullopt: reported, where it is even if the list is continued on the next line.
  std::optional<std::vector<std::string>> Names(const LogicalLine& line, const Setting& setting) {
    size_t offset = 0;
    absl::StatusOr<std::vector<std::string>> names = names_->Expand(setting.value, setting.value_at, &offset);
    if (!names.ok()) diagnostics_->Add(line.At(setting.value_offset + offset), names.status().message());
    if (!names.ok() || names_->exhausted()) return std::nullopt;
    return *std::move(names);
  }

  std::vector<std::string> Children(const LogicalLine& line, const Setting& setting) {
    std::optional<std::vector<std::string>> names = Names(line, setting);
    if (!names.has_value()) return {};
    if (names->empty()) {
      diagnostics_->Add(setting.value_at, absl::StrCat(setting.key, "= is empty; list what is below the switch, e.g. h[1-4]"));
    }
    return *std::move(names);
  }

  absl::string_view rest_;
  int line_ = 0;
  Diagnostics* const diagnostics_;
  NameLists* const names_;
  std::vector<SwitchEntry> switches_;
};

}  // namespace

FabricDescription ReadSlurmConf(absl::string_view contents, Diagnostics* diagnostics) {
  NameLists names(diagnostics);
  const ForeignSettings settings = ReadForeignSettings(contents, &names, diagnostics);
  const std::vector<SwitchEntry> switches = ConfReader(contents, &names, diagnostics).Read();
  if (!diagnostics->empty()) return {};
  return ToDescription(switches, settings, diagnostics);
}

}  // namespace closeknit
