#include "client/completion.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace closeknit {
namespace {

// One function for bash and zsh (through bashcompinit): the words of the longest command typed so far, file names after the flags that
// take one.
std::string BashScript(const CommandWords& commands) {
  std::string script = "_knit() {\n  local cur=${COMP_WORDS[COMP_CWORD]} command='' word words=''\n  COMPREPLY=()\n";
  script += "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    [[ $word == -* ]] && continue\n";
  script += "    case \"${command:+$command }$word\" in\n      ";
  std::vector<std::string> names;
  for (const auto& [command, words] : commands) {
    if (!command.empty()) names.push_back(absl::StrCat("'", command, "'"));
  }
  absl::StrAppend(&script, absl::StrJoin(names, "|"), ") command=\"${command:+$command }$word\" ;;\n      *) break ;;\n    esac\n  done\n");
  script += "  case \"$command\" in\n";
  for (const auto& [command, words] : commands)
    absl::StrAppend(&script, "    '", command, "') words='", absl::StrJoin(words, " "), "' ;;\n");
  script += "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o default -F _knit knit\n";
  return script;
}

std::string FishScript(const CommandWords& commands) {
  std::string script = "complete -c knit -f -n __fish_use_subcommand -a '";
  absl::StrAppend(&script, absl::StrJoin(commands.at(""), " "), "'\n");
  for (const auto& [command, words] : commands) {
    if (command.empty()) continue;
    const std::string last = command.substr(command.rfind(' ') + 1);
    absl::StrAppend(&script, "complete -c knit -n '__fish_seen_subcommand_from ", last, "' -a '", absl::StrJoin(words, " "), "'\n");
  }
  return script;
}

}  // namespace

std::string CompletionScript(const std::string& shell, const CommandWords& commands) {
  if (shell == "bash") return BashScript(commands);
  if (shell == "zsh") return absl::StrCat("#compdef knit\nautoload -U +X bashcompinit && bashcompinit\n", BashScript(commands));
  if (shell == "fish") return FishScript(commands);
  return "";
}

}  // namespace closeknit
