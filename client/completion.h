// Shell completion scripts, made from the command tree.
#ifndef CLOSEKNIT_CLIENT_COMPLETION_H_
#define CLOSEKNIT_CLIENT_COMPLETION_H_

#include <map>
#include <string>
#include <vector>

namespace closeknit {

// Command ("submit", "topo apply", ...) -> its words: subcommands and flags.
using CommandWords = std::map<std::string, std::vector<std::string>>;

// `shell` is "bash", "zsh" or "fish"; empty for any other.
std::string CompletionScript(const std::string& shell, const CommandWords& commands);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLIENT_COMPLETION_H_
