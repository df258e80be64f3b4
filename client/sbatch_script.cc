#include "client/sbatch_script.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/flag_values.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

struct Directive {
  std::string name;                  // as written, without dashes
  std::optional<std::string> value;  // of --name=value, or the next word
};

const SubmitFlag* FindFlag(absl::string_view name) {
  for (const SubmitFlag& flag : SubmitFlags()) {
    if (name == flag.name || name == flag.alias || (name.size() == 1 && name[0] == flag.letter)) return &flag;
  }
  return nullptr;
}

// Words with shell-like quotes: --comment="two words".
std::vector<std::string> Words(absl::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (const char c : line) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      in_word = true;
    } else if (absl::ascii_isspace(c)) {
      if (in_word) words.push_back(word);
      word.clear();
      in_word = false;
    } else if (c == '#' && !in_word) {
      break;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) words.push_back(word);
  return words;
}

class Reader {
 public:
  explicit Reader(absl::string_view file_name) : file_name_(std::string(file_name)) {}

  absl::StatusOr<SbatchScript> Read(absl::string_view contents) {
    if (!absl::StartsWith(contents, "#!")) {
      return absl::InvalidArgumentError(
          absl::StrCat(file_name_, ":1:1: a script must begin with '#!' and its interpreter, e.g. #!/bin/bash"));
    }
    for (const absl::string_view line : absl::StrSplit(contents, '\n')) {
      ++line_;
      const absl::string_view text = absl::StripLeadingAsciiWhitespace(line);
      if (!text.empty() && text[0] != '#') break;
      if (absl::StartsWith(text, "#SBATCH") && text.size() > 7 && absl::ascii_isspace(text[7])) RETURN_IF_ERROR(Line(text.substr(7)));
    }
    RETURN_IF_ERROR(DeriveSizes());
    return std::move(script_);
  }

 private:
  absl::Status Error(absl::string_view what) const { return absl::InvalidArgumentError(absl::StrCat(file_name_, ":", line_, ": ", what)); }

  void Warn(absl::string_view name) {
    script_.warnings.push_back(
        absl::StrCat(file_name_, ":", line_, ": ", name.size() == 1 ? "-" : "--", name, " is ignored: it has no counterpart"));
  }

  absl::Status Line(absl::string_view line) {
    const std::vector<std::string> words = Words(line);
    for (size_t i = 0; i < words.size(); ++i) {
      if (!absl::StartsWith(words[i], "-") || words[i].size() < 2) return Error(absl::StrCat("'", words[i], "' is no option"));
      Directive directive;
      if (absl::StartsWith(words[i], "--")) {
        const std::vector<std::string> parts = absl::StrSplit(words[i].substr(2), absl::MaxSplits('=', 1));
        directive.name = parts[0];
        if (parts.size() == 2) directive.value = parts[1];
      } else {
        directive.name = words[i].substr(1, 1);
        if (words[i].size() > 2) directive.value = words[i].substr(words[i][2] == '=' ? 3 : 2);
      }
      const bool next_is_value = !directive.value && i + 1 < words.size() && !absl::StartsWith(words[i + 1], "-");
      const SubmitFlag* flag = FindFlag(directive.name);
      const bool is_switch = flag != nullptr && flag->kind == FlagKind::kSwitch;
      if (next_is_value && !is_switch) directive.value = words[++i];
      RETURN_IF_ERROR(Apply(directive));
    }
    return absl::OkStatus();
  }

  absl::Status Apply(const Directive& directive) {
    const std::string& name = directive.name;
    if (const SubmitFlag* flag = FindFlag(name)) {
      if (flag->kind == FlagKind::kValue && !directive.value) return Error(absl::StrCat("--", flag->name, " needs a value"));
      script_.flags[flag->name] = directive.value.value_or("");
      return absl::OkStatus();
    }
    const std::string value = directive.value.value_or("");
    if (name == "ntasks" || name == "n") return Count(value, &tasks_);
    if (name == "gpus" || name == "G") return Count(std::vector<std::string>(absl::StrSplit(value, ':')).back(), &gpus_);
    if (name == "gpus-per-task") return Count(std::vector<std::string>(absl::StrSplit(value, ':')).back(), &gpus_per_task_);
    if (name == "gres") return Gres(value);
    if (name == "switches") return Switches(value);
    if (name == "requeue")
      script_.flags["restart"] = "gang";
    else if (name == "no-requeue")
      script_.flags["restart"] = "never";
    else
      Warn(name);
    return absl::OkStatus();
  }

  absl::Status Count(const std::string& value, std::optional<uint32_t>* count) {
    const auto parsed = ParseCount(value);
    if (!parsed.ok()) return Error(parsed.status().message());
    *count = *parsed;
    return absl::OkStatus();
  }

  // gpu:8, gpu:h100:8, gpu; other resources get a warning.
  absl::Status Gres(const std::string& value) {
    for (const std::string& resource : std::vector<std::string>(absl::StrSplit(value, ','))) {
      const std::vector<std::string> parts = absl::StrSplit(resource, ':');
      if (parts[0] != "gpu")
        Warn(absl::StrCat("gres=", resource));
      else
        script_.flags["gpus-per-node"] = parts.size() == 1 ? "1" : parts.back();
    }
    return absl::OkStatus();
  }

  // --switches=1: all under one leaf. More than one has no exact counterpart.
  absl::Status Switches(const std::string& value) {
    if (value == "1" || absl::StartsWith(value, "1@"))
      script_.flags["require"] = "tier1";
    else
      Warn("switches");
    return absl::OkStatus();
  }

  std::optional<uint32_t> Flag(const char* name) const {
    const auto flag = script_.flags.find(name);
    if (flag == script_.flags.end()) return std::nullopt;
    const auto count = ParseCount(flag->second);
    return count.ok() ? std::optional<uint32_t>(*count) : std::nullopt;
  }

  // Totals to numbers a host.
  absl::Status DeriveSizes() {
    const uint32_t nodes = Flag("nodes").value_or(1);
    if (nodes == 0) return absl::OkStatus();  // the server says what is wrong with it
    if (tasks_) {
      if (*tasks_ % nodes != 0)
        return absl::InvalidArgumentError(
            absl::StrCat(file_name_, ": --ntasks=", *tasks_, " does not divide evenly over ", nodes, " nodes"));
      script_.flags.emplace("ranks-per-node", absl::StrCat(*tasks_ / nodes));
    }
    if (gpus_) {
      if (*gpus_ % nodes != 0)
        return absl::InvalidArgumentError(absl::StrCat(file_name_, ": --gpus=", *gpus_, " does not divide evenly over ", nodes, " nodes"));
      script_.flags.emplace("gpus-per-node", absl::StrCat(*gpus_ / nodes));
    }
    if (gpus_per_task_) {
      const uint64_t per_node = uint64_t{*gpus_per_task_} * Flag("ranks-per-node").value_or(1);
      script_.flags.emplace("gpus-per-node", absl::StrCat(per_node));
    }
    return absl::OkStatus();
  }

  const std::string file_name_;
  int line_ = 0;
  std::optional<uint32_t> tasks_, gpus_, gpus_per_task_;
  SbatchScript script_;
};

}  // namespace

absl::StatusOr<SbatchScript> ReadSbatchScript(absl::string_view contents, absl::string_view file_name) {
  return Reader(file_name).Read(contents);
}

}  // namespace closeknit
