#include "cluster_model/readers/ib_subnet.h"

#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace closeknit {
namespace {

// Lines that say nothing about links.
constexpr absl::string_view kIgnored[] = {"vendid=",      "devid=",    "sysimgguid=", "switchguid=", "caguid=", "rtguid=",  "Chassis ",
                                          "Non-Chassis ", "Hostname:", "Spine ",      "Line ",       "DDR",     "SFB-4700 "};

struct Lane {
  absl::string_view name;
  double gbps;
};
constexpr Lane kLanes[] = {{"SDR", 2.5}, {"DDR", 5},  {"QDR", 10},  {"FDR10", 10}, {"FDR", 14},
                           {"EDR", 25},  {"HDR", 50}, {"NDR", 100}, {"XDR", 200}};

// "4xHDR" is 200; 0: no such word.
double RateOf(absl::string_view word) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(word, absl::MaxSplits('x', 1));
  int width = 0;
  if (!absl::SimpleAtoi(parts.first, &width) || width < 1 || width > 12) return 0;
  for (const Lane& lane : kLanes) {
    if (parts.second == lane.name) return width * lane.gbps;
  }
  return 0;
}

// Reads one line from left to right.
class Cursor {
 public:
  Cursor(absl::string_view line, int number) : line_(line), number_(number) {}

  Position at() const { return {number_, static_cast<int>(offset_) + 1}; }
  void SkipSpace() {
    while (offset_ < line_.size() && absl::ascii_isspace(line_[offset_])) ++offset_;
  }
  // What is between `open` and the next `close`; nullopt: `open` is not here, or not closed.
  std::optional<absl::string_view> Between(char open, char close) {
    if (offset_ >= line_.size() || line_[offset_] != open) return std::nullopt;
    const size_t end = line_.find(close, offset_ + 1);
    if (end == line_.npos) return std::nullopt;
    const absl::string_view text = line_.substr(offset_ + 1, end - offset_ - 1);
    offset_ = end + 1;
    return text;
  }
  absl::string_view Word() {
    const size_t begin = offset_;
    while (offset_ < line_.size() && !absl::ascii_isspace(line_[offset_])) ++offset_;
    return line_.substr(begin, offset_ - begin);
  }
  absl::string_view Rest() const { return line_.substr(offset_); }

 private:
  const absl::string_view line_;
  const int number_;
  size_t offset_ = 0;
};

class SubnetParser {
 public:
  explicit SubnetParser(Diagnostics* diagnostics) : diagnostics_(diagnostics) {}

  IbSubnet Parse(absl::string_view contents) {
    int number = 0;
    for (const absl::string_view line : absl::StrSplit(contents, '\n')) ParseLine(line, ++number);
    ResolvePeers();
    return std::move(subnet_);
  }

 private:
  // A link as written: its peer may be described further down.
  struct Written {
    int node = 0;
    std::string peer;
    Position at;
    double gbps = 0;
  };

  void ParseLine(absl::string_view line, int number) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (text.empty() || text[0] == '#') return;
    for (const absl::string_view word : kIgnored) {
      if (absl::StartsWith(text, word)) return;
    }
    Cursor cursor(line, number);
    cursor.SkipSpace();
    if (text[0] == '[') return ParseLink(&cursor);
    ParseHeader(&cursor);
  }

  // Switch	41 "S-506b4b0300123456"		# "MF0;leaf01:MQM8700/U1" enhanced port 0 lid 1 lmc 0
  void ParseHeader(Cursor* cursor) {
    IbNode node{.at = cursor->at()};
    const absl::string_view kind = cursor->Word();
    if (kind == "Switch") {
      node.kind = IbNode::Kind::kSwitch;
    } else if (kind == "Ca") {
      node.kind = IbNode::Kind::kAdapter;
    } else if (kind == "Rt") {
      node.kind = IbNode::Kind::kOther;
    } else {
      return diagnostics_->Add(node.at,
                               absl::StrCat("'", kind.substr(0, 32), "' begins no line of ibnetdiscover; Switch, Ca, Rt or [PORT]"));
    }
    cursor->SkipSpace();
    const Position ports_at = cursor->at();
    int ports = 0;
    if (!absl::SimpleAtoi(cursor->Word(), &ports) || ports < 0) return diagnostics_->Add(ports_at, "expected the number of ports");
    cursor->SkipSpace();
    const Position id_at = cursor->at();
    const std::optional<absl::string_view> id = cursor->Between('"', '"');
    if (!id.has_value() || id->empty()) return diagnostics_->Add(id_at, "expected the node in quotes, e.g. \"S-506b4b0300123456\"");
    node.id = std::string(*id);
    node.description = Description(*cursor);
    if (absl::StrContains(node.description, "Aggregation Node")) node.kind = IbNode::Kind::kOther;
    const auto [first, inserted] = by_id_.emplace(node.id, static_cast<int>(subnet_.nodes.size()));
    if (!inserted) {
      diagnostics_->Add(node.at, absl::StrCat("node ", node.id, " is described already in line ", subnet_.nodes[first->second].at.line));
    }
    subnet_.nodes.push_back(std::move(node));
  }

  // [1](506b4b0300aabbcc) 	"S-506b4b0300123456"[3]		# lid 12 lmc 0 "MF0;leaf01:MQM8700/U1" lid 1 4xHDR
  void ParseLink(Cursor* cursor) {
    const Position line_at = cursor->at();
    if (subnet_.nodes.empty()) return diagnostics_->Add(line_at, "a link before any Switch, Ca or Rt");
    if (!ParsePort(cursor)) return;
    cursor->Between('(', ')');
    cursor->SkipSpace();
    Written link{.node = static_cast<int>(subnet_.nodes.size()) - 1, .peer = {}, .at = cursor->at()};
    const std::optional<absl::string_view> peer = cursor->Between('"', '"');
    if (!peer.has_value()) return diagnostics_->Add(link.at, "expected the peer in quotes, e.g. \"S-506b4b0300123456\"[1]");
    link.peer = std::string(*peer);
    if (!ParsePort(cursor)) return;
    for (const absl::string_view word : absl::StrSplit(cursor->Rest(), absl::ByAnyChar(" \t\r"))) {
      if (const double gbps = RateOf(word); gbps > 0) link.gbps = gbps;
    }
    links_.push_back(std::move(link));
  }

  // "[1]", in chassis "[1][ext 5]".
  bool ParsePort(Cursor* cursor) {
    const Position at = cursor->at();
    const std::optional<absl::string_view> port = cursor->Between('[', ']');
    int number = 0;
    if (!port.has_value() || !absl::SimpleAtoi(*port, &number) || number < 0) {
      diagnostics_->Add(at, "bad bracket: expected a port, e.g. [1]");
      return false;
    }
    cursor->Between('[', ']');
    return true;
  }

  // The first text in quotes of a comment.
  static std::string Description(const Cursor& cursor) {
    const std::vector<absl::string_view> parts = absl::StrSplit(cursor.Rest(), absl::MaxSplits('"', 2));
    return parts.size() < 3 ? "" : std::string(absl::StripAsciiWhitespace(parts[1]));
  }

  void ResolvePeers() {
    for (const Written& link : links_) {
      const auto peer = by_id_.find(link.peer);
      IbNode& node = subnet_.nodes[link.node];
      if (peer == by_id_.end()) {
        diagnostics_->Add(link.at, absl::StrCat("unknown child: the file has no block of ", link.peer, "; use the whole output"));
      } else if (node.kind == IbNode::Kind::kAdapter && subnet_.nodes[peer->second].kind == IbNode::Kind::kAdapter) {
        diagnostics_->Add(link.at, absl::StrCat("adapter ", node.id, " is linked to another adapter; hosts hang on switches"));
      } else {
        node.links.push_back({peer->second, link.gbps});
      }
    }
  }

  Diagnostics* const diagnostics_;
  IbSubnet subnet_;
  absl::flat_hash_map<std::string, int> by_id_;
  std::vector<Written> links_;
};

}  // namespace

IbSubnet ParseIbNetDiscover(absl::string_view contents, Diagnostics* diagnostics) { return SubnetParser(diagnostics).Parse(contents); }

}  // namespace closeknit
