#include "cluster_model/readers/switch_tree.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace closeknit {
namespace {

constexpr int kNone = -1;

class SwitchTree {
 public:
  SwitchTree(absl::Span<const SwitchEntry> switches, const ForeignSettings& settings, Diagnostics* diagnostics)
      : switches_(switches), settings_(settings), diagnostics_(diagnostics), parent_(switches.size(), kNone) {}

  FabricDescription Build() {
    if (switches_.empty()) diagnostics_->Add({}, "the description has no switch");
    if (settings_.hosts.has_value()) {
      diagnostics_->Add(settings_.hosts_at, "hosts= is for ibnetdiscover output; Slurm's files list compute nodes only");
    }
    NumberSwitches();
    for (int s = 0; s < size(); ++s) {
      AddChildren(s);
      AddNodes(s);
    }
    if (!diagnostics_->empty()) return {};
    ReportCycles();
    if (!diagnostics_->empty()) return {};
    FindRoots();
    return std::move(out_);
  }

 private:
  int size() const { return static_cast<int>(switches_.size()); }

  // "switch s1 (line 7)"
  std::string Switch(int s) const { return absl::StrCat("switch ", switches_[s].name, " (line ", switches_[s].at.line, ")"); }

  void NumberSwitches() {
    by_name_.reserve(switches_.size());
    for (int s = 0; s < size(); ++s) {
      const auto [first, inserted] = by_name_.emplace(switches_[s].name, s);
      if (!inserted) {
        diagnostics_->Add(switches_[s].at, absl::StrCat("switch ", switches_[s].name, " is described already in line ",
                                                        switches_[first->second].at.line, "; names are unique"));
      }
      out_.domains.push_back({.name = switches_[s].name});
    }
  }

  void AddChildren(int s) {
    for (const std::string& name : switches_[s].switches) {
      const auto child = by_name_.find(name);
      if (child == by_name_.end()) {
        diagnostics_->Add(switches_[s].switches_at,
                          absl::StrCat("unknown child: no switch ", name, " is described; describe it, or take it out of the children of ",
                                       switches_[s].name));
        continue;
      }
      int& parent = parent_[child->second];
      if (parent == s) {
        diagnostics_->Add(switches_[s].switches_at, absl::StrCat("switch ", name, " is there twice; do ranges overlap?"));
      } else if (parent != kNone) {
        diagnostics_->Add(switches_[s].switches_at, absl::StrCat("switch ", name, " is already below ", Switch(parent),
                                                                 "; a tree has one parent each: name parallel switches as one"));
      } else {
        parent = s;
        out_.domains[s].child_domains.push_back(child->second);
      }
    }
  }

  void AddNodes(int s) {
    for (const std::string& name : switches_[s].nodes) {
      const auto [first, inserted] = switch_of_node_.emplace(name, s);
      if (!inserted) {
        diagnostics_->Add(switches_[s].nodes_at,
                          first->second == s ? absl::StrCat("node ", name, " is there twice; do ranges overlap?")
                                             : absl::StrCat("duplicate host: node ", name, " is already below ", Switch(first->second),
                                                            "; give a node one leaf switch (of parallel rails, name the group)"));
        continue;
      }
      if (out_.hosts.size() == kMaxFabricHosts) {
        diagnostics_->Add(switches_[s].nodes_at, absl::StrCat("more than ", kMaxFabricHosts, " nodes"));
        return;
      }
      out_.domains[s].hosts.push_back(static_cast<int>(out_.hosts.size()));
      out_.hosts.push_back(settings_.host);
      out_.hosts.back().name = name;
    }
  }

  // Each switch has at most one parent: walking up from any ends at a root, or goes round.
  void ReportCycles() {
    std::vector<int> walk(switches_.size(), kNone);  // number of the walk that saw it
    for (int start = 0; start < size(); ++start) {
      int s = start;
      while (s != kNone && walk[s] == kNone) {
        walk[s] = start;
        s = parent_[s];
      }
      if (s == kNone || walk[s] != start) continue;
      std::vector<std::string> names = {switches_[s].name};
      for (int up = parent_[s]; up != s; up = parent_[up]) names.push_back(switches_[up].name);
      names.push_back(switches_[s].name);
      diagnostics_->Add(switches_[s].at,
                        absl::StrCat("cycle: ", absl::StrJoin(names.rbegin(), names.rend(), " > "), "; a switch cannot be below itself"));
    }
  }

  // Roots are joined (a network of several trees); one that is lower than the others was forgotten in somebody's children.
  void FindRoots() {
    std::vector<int> height(switches_.size(), 0);
    int top = 0;
    for (int s = 0; s < size(); ++s) {
      if (!switches_[s].switches.empty()) continue;
      int above = 0;
      for (int up = s; up != kNone; up = parent_[up]) {
        height[up] = std::max(height[up], ++above);
        if (above > kMaxTiers) {
          diagnostics_->Add(switches_[up].at, absl::StrCat("switch ", switches_[up].name, " has more than ", kMaxTiers - 1,
                                                           " tiers of switches below it; at most ", kMaxTiers, " tiers are supported"));
          return;
        }
      }
    }
    for (int s = 0; s < size(); ++s) {
      if (parent_[s] == kNone) out_.roots.push_back(s);
    }
    for (const int root : out_.roots) top = std::max(top, height[root]);
    for (const int root : out_.roots) {
      if (height[root] == top) continue;
      diagnostics_->Add(switches_[root].at,
                        absl::StrCat("orphan: switch ", switches_[root].name,
                                     " is below no other switch, while there are switches above its like; add it to the "
                                     "children of one"));
    }
  }

  const absl::Span<const SwitchEntry> switches_;
  const ForeignSettings& settings_;
  Diagnostics* const diagnostics_;
  std::vector<int> parent_;
  absl::flat_hash_map<absl::string_view, int> by_name_;
  absl::flat_hash_map<absl::string_view, int> switch_of_node_;
  FabricDescription out_;
};

}  // namespace

FabricDescription ToDescription(absl::Span<const SwitchEntry> switches, const ForeignSettings& settings, Diagnostics* diagnostics) {
  return SwitchTree(switches, settings, diagnostics).Build();
}

}  // namespace closeknit
