// The tree form of Slurm's topology.yaml (25.05):
//   - topology: topo1
//     cluster_default: true
//     tree:
//       switches:
//         - {switch: s0, children: "s[1-2]"}
//         - {switch: s1, nodes: "h[1-2]"}
#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster_model/readers/formats.h"
#include "cluster_model/readers/host_settings.h"
#include "cluster_model/readers/switch_tree.h"
#include "cluster_model/readers/yaml_tree.h"

namespace closeknit {
namespace {

constexpr absl::string_view kTopologyKeys[] = {"topology", "cluster_default", "tree", "block", "flat", "ring", "torus3d"};
constexpr absl::string_view kTreeKeys[] = {"switches"};
constexpr absl::string_view kSwitchKeys[] = {"switch", "children", "nodes"};
constexpr size_t kMaxNameBytes = 64;

class SlurmYamlReader {
 public:
  SlurmYamlReader(NameLists* names, Diagnostics* diagnostics) : diagnostics_(diagnostics), names_(names) {}

  std::vector<SwitchEntry> Read(const YamlNode& root) {
    const YamlNode* tree = ChooseTree(root);
    if (tree == nullptr) return {};
    const YamlMap map(*tree, "'tree'", kTreeKeys, diagnostics_);
    map.Require("switches");
    std::vector<SwitchEntry> switches;
    for (const YamlNode& node : map.List("switches")) {
      switches.push_back(ReadSwitch(node));
      if (names_->exhausted()) break;
    }
    return switches;
  }

 private:
  // The tree of the first topology with "cluster_default: true", else of the only topology that is a tree.
  const YamlNode* ChooseTree(const YamlNode& root) {
    if (root.kind != YamlNode::Kind::kSequence) {
      diagnostics_->Add(root.at, absl::StrCat("the file is ", KindName(root.kind), "; topology.yaml is a list of topologies"));
      return nullptr;
    }
    std::vector<const YamlNode*> trees;
    for (const YamlNode& node : root.values) {
      const YamlMap topology(node, "a topology", kTopologyKeys, diagnostics_);
      topology.Require("topology");
      const YamlNode* tree = topology.Find("tree");
      if (topology.Bool("cluster_default").value_or(false)) {
        if (tree == nullptr) {
          diagnostics_->Add(node.at, "the topology with 'cluster_default: true' has no 'tree'; only trees are read");
        }
        return tree;
      }
      if (tree != nullptr) trees.push_back(tree);
    }
    if (trees.size() == 1) return trees[0];
    diagnostics_->Add(root.at, absl::StrCat("the file has ", trees.size(), " topologies with a 'tree'",
                                            trees.empty() ? "; one is needed" : "; set 'cluster_default: true' in the one to read"));
    return nullptr;
  }

  SwitchEntry ReadSwitch(const YamlNode& node) {
    const int errors = diagnostics_->count();
    const YamlMap map(node, "a switch", kSwitchKeys, diagnostics_);
    SwitchEntry entry;
    const YamlNode* name = map.Require("switch");
    entry.name = map.Text("switch", kMaxNameBytes).value_or("");
    entry.at = name == nullptr ? node.at : name->text_at();
    ReadNames(map, "children", &entry.switches, &entry.switches_at);
    ReadNames(map, "nodes", &entry.nodes, &entry.nodes_at);
    if (diagnostics_->count() != errors) return entry;
    if (!entry.switches.empty() && !entry.nodes.empty()) {
      diagnostics_->Add(entry.at,
                        absl::StrCat("switch ", entry.name, " has both 'children' and 'nodes'; put the nodes below a leaf switch"));
    }
    if (entry.switches.empty() && entry.nodes.empty()) {
      diagnostics_->Add(entry.at, absl::StrCat("switch ", entry.name, " has neither 'children' nor 'nodes'; give it one"));
    }
    return entry;
  }

  void ReadNames(const YamlMap& map, absl::string_view key, std::vector<std::string>* names, Position* at) {
    const YamlNode* node = map.Find(key);
    if (node == nullptr) return;
    *at = node->text_at();
    if (node->kind != YamlNode::Kind::kScalar) {
      return diagnostics_->Add(node->at, absl::StrCat(key, ": ", KindName(node->kind), " is not accepted; a host list, e.g. h[1-4]"));
    }
    std::optional<std::vector<std::string>> expanded = names_->Expand(node->scalar, *at);
    if (!expanded.has_value()) return;
    if (expanded->empty()) diagnostics_->Add(*at, absl::StrCat(key, " is empty; list what is below the switch, e.g. h[1-4]"));
    *names = *std::move(expanded);
  }

  Diagnostics* const diagnostics_;
  NameLists* const names_;
};

}  // namespace

FabricDescription ReadSlurmYaml(absl::string_view contents, Diagnostics* diagnostics) {
  NameLists names(diagnostics);
  const ForeignSettings settings = ReadForeignSettings(contents, &names, diagnostics);
  const std::optional<YamlNode> root = ParseYaml(contents, diagnostics);
  if (!root.has_value()) return {};
  const std::vector<SwitchEntry> switches = SlurmYamlReader(&names, diagnostics).Read(*root);
  if (!diagnostics->empty()) return {};
  return ToDescription(switches, settings, diagnostics);
}

}  // namespace closeknit
