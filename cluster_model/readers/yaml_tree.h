// A YAML document as a plain tree with positions, made from yaml-cpp's events.
//
// Not yaml-cpp's own nodes: those keep no positions of keys, take duplicate keys silently, follow aliases (so that a kilobyte can stand for
// gigabytes), and are several times slower to build.
#ifndef CLOSEKNIT_CLUSTER_MODEL_READERS_YAML_TREE_H_
#define CLOSEKNIT_CLUSTER_MODEL_READERS_YAML_TREE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster_model/fabric.h"
#include "cluster_model/readers/source.h"

namespace closeknit {

struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  Position at = {};
  bool quoted = false;                // scalar
  std::string scalar = {};            // scalar
  std::vector<YamlNode> keys = {};    // map: scalars, no two equal
  std::vector<YamlNode> values = {};  // map: beside keys; sequence: its items

  // Where the scalar's text begins.
  Position text_at() const { return {at.line, at.column + (quoted ? 1 : 0)}; }
};

// "a list", "a map", ...
absl::string_view KindName(YamlNode::Kind kind);

// The one document of `contents`. nullopt: reported (not YAML, a duplicate key, an alias, a second document, deeper than 16 levels, more
// than 4,000,000 values).
std::optional<YamlNode> ParseYaml(absl::string_view contents, Diagnostics* diagnostics);

// Typed access to a map. Each reports what is wrong, with what would be right.
class YamlMap {
 public:
  // Reports if `node` is no map (then it looks empty), and its keys that are not known. `what`: "a fabric entry".
  YamlMap(const YamlNode& node, absl::string_view what, absl::Span<const absl::string_view> known, Diagnostics* diagnostics);

  Position at() const { return node_.at; }
  const YamlNode* Find(absl::string_view key) const;  // null: not there
  // Reports where the key is missing.
  const YamlNode* Require(absl::string_view key) const;

  // nullopt: not there, or reported.
  std::optional<int> Int(absl::string_view key, int low, int high) const;
  std::optional<bool> Bool(absl::string_view key) const;
  std::optional<std::string> Text(absl::string_view key, size_t max_bytes) const;
  std::optional<Uplinks> Links(absl::string_view key) const;
  std::optional<std::vector<std::string>> Words(absl::string_view key) const;  // [a, b] or a; letters, digits and _.:=/+-
  absl::Span<const YamlNode> List(absl::string_view key) const;                // empty: not there, or reported

 private:
  const YamlNode* Scalar(absl::string_view key, absl::string_view wanted) const;
  void Wrong(const YamlNode& node, absl::string_view key, absl::string_view wanted) const;

  const YamlNode& node_;
  Diagnostics* const diagnostics_;
};

// As YamlMap::Links of a scalar node.
std::optional<Uplinks> LinksOf(const YamlNode& node, absl::string_view key, Diagnostics* diagnostics);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_READERS_YAML_TREE_H_
