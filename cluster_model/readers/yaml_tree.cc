#include "cluster_model/readers/yaml_tree.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cluster_model/readers/host_settings.h"

namespace closeknit {
namespace {

constexpr size_t kMaxDepth = 16;
constexpr size_t kMaxNodes = 4'000'000;
constexpr size_t kMaxWordBytes = 64;
constexpr size_t kMaxWords = 64;

Position ToPosition(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

// Builds the tree from the inside out. After the first error it ignores what comes.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Diagnostics* diagnostics) : diagnostics_(diagnostics) {}

  bool failed() const { return failed_; }
  YamlNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { Add({.at = ToPosition(mark)}); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Fail(ToPosition(mark), "aliases (*name) are not supported; write it out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& value) override {
    Add({.kind = YamlNode::Kind::kScalar, .at = ToPosition(mark), .quoted = tag == "!", .scalar = value});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    Open({.kind = YamlNode::Kind::kSequence, .at = ToPosition(mark)});
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    Open({.kind = YamlNode::Kind::kMap, .at = ToPosition(mark)});
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    YamlNode node;
    absl::flat_hash_map<std::string, int> key_lines;  // map only
  };

  void Fail(Position at, absl::string_view what) {
    if (!failed_) diagnostics_->Add(at, what);
    failed_ = true;
  }

  void Open(YamlNode node) {
    if (failed_) return;
    if (open_.size() == kMaxDepth) return Fail(node.at, absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
    open_.push_back({std::move(node), {}});
  }

  void Close() {
    if (failed_) return;
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    Add(std::move(node));
  }

  void Add(YamlNode node) {
    if (failed_) return;
    if (++nodes_ > kMaxNodes) return Fail(node.at, absl::StrCat("more than ", kMaxNodes, " values; use ranges such as h[1-64]"));
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = open_.back();
    if (frame.node.kind == YamlNode::Kind::kSequence || frame.node.keys.size() > frame.node.values.size()) {
      frame.node.values.push_back(std::move(node));
      return;
    }
    if (node.kind != YamlNode::Kind::kScalar) return Fail(node.at, absl::StrCat("a key is a word, not ", KindName(node.kind)));
    const auto [first, inserted] = frame.key_lines.emplace(node.scalar, node.at.line);
    if (!inserted) {
      return Fail(node.at, absl::StrCat("key '", node.scalar.substr(0, 64), "' is there already, in line ", first->second));
    }
    frame.node.keys.push_back(std::move(node));
  }

  Diagnostics* const diagnostics_;
  std::vector<Frame> open_;
  YamlNode root_;
  size_t nodes_ = 0;
  bool failed_ = false;
};

bool IsWord(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxWordBytes && absl::c_all_of(text, [](char c) {
    return absl::ascii_isalnum(c) || absl::string_view("_.:=/+-").find(c) != absl::string_view::npos;
  });
}

}  // namespace

absl::string_view KindName(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kScalar:
      return "a single value";
    case YamlNode::Kind::kSequence:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
  }
  return "";
}

std::optional<YamlNode> ParseYaml(absl::string_view contents, Diagnostics* diagnostics) {
  TreeBuilder builder(diagnostics);
  std::istringstream stream{std::string(contents)};
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      diagnostics->Add({}, "the file is empty");
      return std::nullopt;
    }
    if (builder.failed()) return std::nullopt;
    YamlNode root = builder.TakeRoot();
    TreeBuilder second(diagnostics);
    if (parser.HandleNextDocument(second)) {
      if (!second.failed()) diagnostics->Add(second.TakeRoot().at, "a second document; a description is one document");
      return std::nullopt;
    }
    return root;
  } catch (const YAML::DeepRecursion& error) {  // its own text is "bad file"
    if (!builder.failed()) diagnostics->Add(ToPosition(error.mark), absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
  } catch (const YAML::Exception& error) {
    if (!builder.failed()) diagnostics->Add(ToPosition(error.mark), absl::StrCat("not YAML: ", error.msg));
  }
  return std::nullopt;
}

YamlMap::YamlMap(const YamlNode& node, absl::string_view what, absl::Span<const absl::string_view> known, Diagnostics* diagnostics)
    : node_(node), diagnostics_(diagnostics) {
  if (node.kind != YamlNode::Kind::kMap) {
    diagnostics->Add(node.at, absl::StrCat(what, " is ", KindName(node.kind), "; it must be a map, e.g. {", known[0], ": ...}"));
    return;
  }
  for (const YamlNode& key : node.keys) {
    if (!absl::c_linear_search(known, absl::string_view(key.scalar))) diagnostics->Add(key.at, Unknown("key", key.scalar, known));
  }
}

const YamlNode* YamlMap::Find(absl::string_view key) const {
  if (node_.kind != YamlNode::Kind::kMap) return nullptr;
  for (size_t i = 0; i < node_.keys.size(); ++i) {
    if (node_.keys[i].scalar == key) return &node_.values[i];
  }
  return nullptr;
}

const YamlNode* YamlMap::Require(absl::string_view key) const {
  const YamlNode* value = Find(key);
  if (value == nullptr && node_.kind == YamlNode::Kind::kMap) diagnostics_->Add(node_.at, absl::StrCat("key '", key, "' is missing"));
  return value;
}

void YamlMap::Wrong(const YamlNode& node, absl::string_view key, absl::string_view wanted) const {
  const std::string found =
      node.kind == YamlNode::Kind::kScalar ? absl::StrCat("'", node.scalar.substr(0, 64), "'") : std::string(KindName(node.kind));
  diagnostics_->Add(node.at, absl::StrCat(key, ": ", found, " is not accepted; ", wanted));
}

const YamlNode* YamlMap::Scalar(absl::string_view key, absl::string_view wanted) const {
  const YamlNode* node = Find(key);
  if (node == nullptr || node->kind == YamlNode::Kind::kScalar) return node;
  Wrong(*node, key, wanted);
  return nullptr;
}

std::optional<int> YamlMap::Int(absl::string_view key, int low, int high) const {
  const std::string wanted = absl::StrCat(low, "..", high);
  const YamlNode* node = Scalar(key, wanted);
  if (node == nullptr) return std::nullopt;
  int value = 0;
  if (absl::SimpleAtoi(node->scalar, &value) && value >= low && value <= high) return value;
  Wrong(*node, key, wanted);
  return std::nullopt;
}

std::optional<bool> YamlMap::Bool(absl::string_view key) const {
  constexpr absl::string_view kWanted = "true or false";
  const YamlNode* node = Scalar(key, kWanted);
  if (node == nullptr) return std::nullopt;
  const std::string value = absl::AsciiStrToLower(node->scalar);
  if (value == "true") return true;
  if (value == "false") return false;
  Wrong(*node, key, kWanted);
  return std::nullopt;
}

std::optional<std::string> YamlMap::Text(absl::string_view key, size_t max_bytes) const {
  const std::string wanted = absl::StrCat("a text of 1..", max_bytes, " bytes");
  const YamlNode* node = Scalar(key, wanted);
  if (node == nullptr) return std::nullopt;
  if (!node->scalar.empty() && node->scalar.size() <= max_bytes) return node->scalar;
  Wrong(*node, key, wanted);
  return std::nullopt;
}

std::optional<Uplinks> YamlMap::Links(absl::string_view key) const {
  const YamlNode* node = Find(key);
  return node == nullptr ? std::nullopt : LinksOf(*node, key, diagnostics_);
}

std::optional<Uplinks> LinksOf(const YamlNode& node, absl::string_view key, Diagnostics* diagnostics) {
  if (node.kind == YamlNode::Kind::kScalar) {
    if (const std::optional<Uplinks> links = ParseLinks(node.scalar); links.has_value()) return links;
    diagnostics->Add(node.at, absl::StrCat(key, ": '", node.scalar.substr(0, 64), "' is not accepted; ", kLinksForm));
  } else {
    diagnostics->Add(node.at, absl::StrCat(key, ": ", KindName(node.kind), " is not accepted; ", kLinksForm));
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> YamlMap::Words(absl::string_view key) const {
  constexpr absl::string_view kWanted = "a word of letters, digits and _.:=/+-, or a list of them, e.g. [a100, ib]";
  const YamlNode* node = Find(key);
  if (node == nullptr) return std::nullopt;
  if (node->kind != YamlNode::Kind::kScalar && node->kind != YamlNode::Kind::kSequence) {
    Wrong(*node, key, kWanted);
    return std::nullopt;
  }
  const absl::Span<const YamlNode> items =
      node->kind == YamlNode::Kind::kScalar ? absl::MakeConstSpan(node, 1) : absl::MakeConstSpan(node->values);
  if (items.size() > kMaxWords) {
    diagnostics_->Add(node->at, absl::StrCat(key, ": ", items.size(), " words; at most ", kMaxWords));
    return std::nullopt;
  }
  std::vector<std::string> words;
  for (const YamlNode& item : items) {
    if (item.kind != YamlNode::Kind::kScalar || !IsWord(item.scalar)) {
      Wrong(item, key, kWanted);
      return std::nullopt;
    }
    if (absl::c_linear_search(words, item.scalar)) {
      diagnostics_->Add(item.at, absl::StrCat(key, ": '", item.scalar, "' is there twice"));
      return std::nullopt;
    }
    words.push_back(item.scalar);
  }
  return words;
}

absl::Span<const YamlNode> YamlMap::List(absl::string_view key) const {
  const YamlNode* node = Find(key);
  if (node == nullptr) return {};
  if (node->kind == YamlNode::Kind::kSequence && !node->values.empty()) return node->values;
  Wrong(*node, key, "a list with one entry at least");
  return {};
}

}  // namespace closeknit
