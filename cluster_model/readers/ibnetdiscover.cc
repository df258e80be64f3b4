// Tiers out of a graph. A subnet does not say what its racks and pods are; its links do:
//   1. switches with hosts are leaves; others are as many levels up as they are links away from a leaf;
//   2. hosts on the same leaves are one tier-1 domain: a rack below one leaf, or a rail-optimised scalable unit below one leaf a rail;
//   3. domains below the same switches of the next level are one domain of the next tier, and so on.
// "The same" is by the majority: a host with a rail down, or a cable in the wrong switch, belongs where most of its links are.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cluster_model/readers/formats.h"
#include "cluster_model/readers/host_settings.h"
#include "cluster_model/readers/ib_subnet.h"
#include "proto/base/host_list.h"

namespace closeknit {
namespace {

constexpr int kNone = -1;
// A switch with few hosts beside one with many is a spine on which some service hangs (a subnet manager, a gateway).
constexpr int kServiceHostShare = 4;

bool IsName(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxHostNameLength &&
         absl::c_all_of(text, [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

// "leaf01" of "MF0;leaf01:MQM8700/U1".
absl::string_view SwitchName(absl::string_view description) {
  const size_t begin = description.find(';');
  if (begin != description.npos) description.remove_prefix(begin + 1);
  return description.substr(0, description.find(':'));
}

// Sums parallel links. Links of different rates count as their mean; one that states none leaves the sum not stated.
class LinkSum {
 public:
  void Add(double gbps) {
    ++count_;
    total_ += gbps;
    if (gbps == 0) stated_ = false;
  }
  Uplinks Get() const { return stated_ && count_ > 0 ? Uplinks{count_, total_ / count_} : Uplinks{}; }

 private:
  uint32_t count_ = 0;
  double total_ = 0;
  bool stated_ = true;
};

// A host, or a domain of the level below, and the switches of the present level that it hangs on: sorted, each once, one at least.
struct Member {
  enum class Kind { kHost, kDomain };
  Kind kind = Kind::kHost;
  int index = 0;
  std::vector<int> switches;
};

// Puts members with the same switches into one group: the sets with most members first, each into the group that owns most of its switches,
// or into a new one. Returns the group of each member.
std::vector<int> GroupBySwitches(absl::Span<const Member> members) {
  std::map<std::vector<int>, std::vector<int>> by_switches;
  for (int m = 0; m < static_cast<int>(members.size()); ++m) by_switches[members[m].switches].push_back(m);
  std::vector<std::pair<std::vector<int>, std::vector<int>>> sets(by_switches.begin(), by_switches.end());
  std::stable_sort(sets.begin(), sets.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.size(), a.first.size()) > std::pair(b.second.size(), b.first.size());
  });
  std::vector<int> group_of(members.size());
  absl::flat_hash_map<int, int> owner;  // of a switch
  int groups = 0;
  for (const auto& [switches, with_them] : sets) {
    std::map<int, int> owned;  // how many of the switches, by group
    for (const int s : switches) {
      if (const auto it = owner.find(s); it != owner.end()) ++owned[it->second];
    }
    int group = groups, most = 0;
    for (const auto& [candidate, count] : owned) {
      if (count > most) std::tie(group, most) = std::pair(candidate, count);
    }
    if (most == 0) ++groups;
    for (const int s : switches) owner.emplace(s, group);
    for (const int m : with_them) group_of[m] = group;
  }
  return group_of;
}

class TierFinder {
 public:
  TierFinder(const IbSubnet& subnet, const ForeignSettings& settings, Diagnostics* diagnostics)
      : nodes_(subnet.nodes), settings_(settings), diagnostics_(diagnostics) {}

  FabricDescription Find() {
    CollectHosts();
    if (!diagnostics_->empty()) return {};
    RankSwitches();
    if (!diagnostics_->empty()) return {};
    AddHosts();
    if (!diagnostics_->empty()) return {};
    // Levels beyond the domain that holds everything are of switches without compute hosts below them.
    for (int level = 1; level <= highest_level_ && !IsOneTree(); ++level) GroupLevel(level);
    std::vector<int> roots;
    for (int d = 0; d < static_cast<int>(parts_.size()); ++d) {
      if (parts_[d].parent == kNone) roots.push_back(d);
    }
    SortByFirstHost(&roots);
    out_.roots = std::move(roots);
    NameDomains();
    return std::move(out_);
  }

 private:
  struct HostLinks {
    std::string name;
    std::vector<int> switches;  // with repetitions
    LinkSum sum;
    absl::flat_hash_map<std::string, int> adapters;  // name of each, and the line that has it
  };
  // A domain under construction, beside out_.domains.
  struct Part {
    std::vector<int> switches;  // of its own level
    int level = 1;
    int parent = kNone;
    int first_host = 0;
  };

  bool IsSwitch(int node) const { return nodes_[node].kind == IbNode::Kind::kSwitch; }

  // One host for all adapters whose descriptions begin with its name.
  void CollectHosts() {
    absl::flat_hash_map<std::string, int> by_name;
    for (const IbNode& node : nodes_) {
      if (node.kind != IbNode::Kind::kAdapter) continue;
      const std::pair<std::string, std::string> words = absl::StrSplit(node.description, absl::MaxSplits(' ', 1));
      if (!IsName(words.first)) {
        diagnostics_->Add(node.at, absl::StrCat("the description '", node.description.substr(0, 64), "' of adapter ", node.id,
                                                " does not begin with a host name; set it, e.g. with rdma-ndd"));
        continue;
      }
      const auto [it, inserted] = by_name.emplace(words.first, static_cast<int>(hosts_.size()));
      if (inserted) hosts_.push_back({.name = words.first, .switches = {}, .sum = {}, .adapters = {}});
      HostLinks& host = hosts_[it->second];
      const auto [adapter, is_new] = host.adapters.emplace(words.second, node.at.line);
      if (!is_new) {
        diagnostics_->Add(node.at,
                          absl::StrCat("duplicate host: another adapter is named '", node.description, "' in line ", adapter->second,
                                       "; two hosts of one name, or descriptions that are not set (rdma-ndd sets them)"));
      }
      for (const IbLink& link : node.links) {
        if (!IsSwitch(link.peer)) continue;
        host.switches.push_back(link.peer);
        host.sum.Add(link.gbps);
      }
      if (host.switches.empty() && node.links.empty()) {
        diagnostics_->Add(node.at, absl::StrCat("orphan: adapter '", node.description, "' is linked to no switch"));
      }
    }
    if (hosts_.empty() && diagnostics_->empty())
      diagnostics_->Add({}, "the subnet has no host; the file needs the Ca blocks of ibnetdiscover's output");
    if (hosts_.size() > kMaxFabricHosts) diagnostics_->Add({}, absl::StrCat("more than ", kMaxFabricHosts, " hosts"));
    std::sort(hosts_.begin(), hosts_.end(), [](const HostLinks& a, const HostLinks& b) { return HostNameLess(a.name, b.name); });
  }

  void RankSwitches() {
    std::vector<int> host_links(nodes_.size(), 0);
    for (const HostLinks& host : hosts_) {
      for (const int s : host.switches) ++host_links[s];
    }
    level_.assign(nodes_.size(), 0);
    std::vector<int> queue;
    for (int s = 0; s < static_cast<int>(nodes_.size()); ++s) {
      const bool is_service = absl::c_any_of(nodes_[s].links, [&](const IbLink& link) {
        return IsSwitch(link.peer) && host_links[s] * kServiceHostShare <= host_links[link.peer];
      });
      if (!IsSwitch(s) || host_links[s] == 0 || is_service) continue;
      level_[s] = 1;
      queue.push_back(s);
    }
    for (size_t i = 0; i < queue.size(); ++i) {  // breadth first
      for (const IbLink& link : nodes_[queue[i]].links) {
        if (!IsSwitch(link.peer) || level_[link.peer] != 0) continue;
        level_[link.peer] = level_[queue[i]] + 1;
        queue.push_back(link.peer);
      }
    }
    for (int s = 0; s < static_cast<int>(nodes_.size()); ++s) {
      if (!IsSwitch(s)) continue;
      highest_level_ = std::max(highest_level_, level_[s]);
      if (level_[s] == 0) {
        diagnostics_->Add(nodes_[s].at,
                          absl::StrCat("orphan: switch '", nodes_[s].description, "' (", nodes_[s].id, ") is linked to no other"));
      }
    }
    if (highest_level_ > kMaxTiers) {
      diagnostics_->Add(
          {}, absl::StrCat("the subnet has ", highest_level_, " levels of switches; at most ", kMaxTiers, " tiers are supported"));
    }
  }

  // The switches of `level` among those given, sorted, each once.
  std::vector<int> AtLevel(std::vector<int> switches, int level) const {
    std::erase_if(switches, [&](int s) { return level_[s] != level; });
    std::sort(switches.begin(), switches.end());
    switches.erase(std::unique(switches.begin(), switches.end()), switches.end());
    return switches;
  }

  // Ranks are of all hosts; from here on only compute hosts count.
  void AddHosts() {
    if (settings_.hosts.has_value()) {
      std::erase_if(hosts_, [this](const HostLinks& links) { return !settings_.hosts->contains(links.name); });
      if (hosts_.empty()) diagnostics_->Add({}, "the subnet has none of the hosts that '#closeknit: hosts=' names");
    }
    for (const HostLinks& links : hosts_) {
      Host host = settings_.host;
      host.name = links.name;
      if (host.rails == 0) host.rails = std::min(static_cast<int>(links.adapters.size()), kMaxHostRails);
      if (host.nics.count == 0) host.nics = links.sum.Get();
      out_.hosts.push_back(std::move(host));
    }
    placed_.assign(hosts_.size(), false);
  }

  bool IsOneTree() const {
    return absl::c_count_if(parts_, [](const Part& part) { return part.parent == kNone; }) == 1 && !absl::c_linear_search(placed_, false);
  }

  // Makes the domains of a level.
  void GroupLevel(int level) {
    std::vector<Member> members;
    for (int d = 0; d < static_cast<int>(parts_.size()); ++d) {
      if (parts_[d].parent == kNone) AddIfLinked({Member::Kind::kDomain, d, SwitchesAbove(d, level)}, &members);
    }
    for (int h = 0; h < static_cast<int>(hosts_.size()); ++h) {
      if (!placed_[h]) AddIfLinked({Member::Kind::kHost, h, AtLevel(hosts_[h].switches, level)}, &members);
    }
    const std::vector<int> group_of = GroupBySwitches(members);
    std::map<int, int> part_of;  // by group
    for (size_t m = 0; m < members.size(); ++m) {
      const auto [it, inserted] = part_of.emplace(group_of[m], static_cast<int>(parts_.size()));
      if (inserted) {
        parts_.push_back({.switches = {}, .level = level, .parent = kNone, .first_host = static_cast<int>(hosts_.size())});
        out_.domains.emplace_back();
      }
      Join(members[m], it->second);
    }
    for (const auto& [group, part] : part_of) {
      parts_[part].switches = AtLevel(std::move(parts_[part].switches), level);
      SortByFirstHost(&out_.domains[part].child_domains);
    }
  }

  static void AddIfLinked(Member member, std::vector<Member>* members) {
    if (!member.switches.empty()) members->push_back(std::move(member));
  }

  // The switches of `level` that a domain hangs on; also sums up its uplinks.
  std::vector<int> SwitchesAbove(int domain, int level) {
    std::vector<int> switches;
    LinkSum sum;
    for (const int s : parts_[domain].switches) {
      for (const IbLink& link : nodes_[s].links) {
        if (!IsSwitch(link.peer) || level_[link.peer] != level) continue;
        switches.push_back(link.peer);
        sum.Add(link.gbps);
      }
    }
    if (!switches.empty()) out_.domains[domain].uplinks = sum.Get();
    return AtLevel(std::move(switches), level);
  }

  void Join(const Member& member, int part) {
    parts_[part].switches.insert(parts_[part].switches.end(), member.switches.begin(), member.switches.end());
    int first_host = member.index;
    if (member.kind == Member::Kind::kDomain) {
      parts_[member.index].parent = part;
      out_.domains[part].child_domains.push_back(member.index);
      first_host = parts_[member.index].first_host;
    } else {
      placed_[member.index] = true;
      out_.domains[part].hosts.push_back(member.index);
    }
    parts_[part].first_host = std::min(parts_[part].first_host, first_host);
  }

  void SortByFirstHost(std::vector<int>* domains) const {
    std::sort(domains->begin(), domains->end(), [this](int a, int b) { return parts_[a].first_host < parts_[b].first_host; });
  }

  // After the switch where it is one with a name of its own, else "su1", "pod1", ... in the order of hosts.
  void NameDomains() {
    const bool rails = absl::c_any_of(parts_, [](const Part& part) { return part.level == 1 && part.switches.size() > 1; });
    if (rails) out_.tier_names = {"su"};
    std::map<std::string, int> times;
    for (const IbNode& node : nodes_) {
      if (node.kind == IbNode::Kind::kSwitch) ++times[std::string(SwitchName(node.description))];
    }
    std::vector<int> order(parts_.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int>(d);
    SortByFirstHost(&order);
    std::vector<int> numbers(highest_level_ + 1);
    absl::flat_hash_set<std::string> taken;
    for (const int d : order) {
      const Part& part = parts_[d];
      const std::string own = part.switches.size() == 1 ? std::string(SwitchName(nodes_[part.switches[0]].description)) : "";
      std::string name = IsName(own) && times[own] == 1 ? own : absl::StrCat(Noun(part.level, rails), ++numbers[part.level]);
      while (!taken.insert(name).second) name += "-2";
      out_.domains[d].name = std::move(name);
    }
  }

  static std::string Noun(int level, bool rails) {
    static constexpr absl::string_view kNouns[] = {"rack", "pod", "core"};
    if (level == 1 && rails) return "su";
    return level <= 3 ? std::string(kNouns[level - 1]) : absl::StrCat("tier", level, "-");
  }

  const std::vector<IbNode>& nodes_;
  const ForeignSettings& settings_;
  Diagnostics* const diagnostics_;
  std::vector<HostLinks> hosts_;  // sorted by name
  std::vector<bool> placed_;      // [host]: below a domain
  std::vector<int> level_;        // [node]: 1 leaf, 2 above it, ...; 0: no switch
  int highest_level_ = 1;
  std::vector<Part> parts_;
  FabricDescription out_;
};

}  // namespace

FabricDescription ReadIbNetDiscover(absl::string_view contents, Diagnostics* diagnostics) {
  NameLists names(diagnostics);
  const ForeignSettings settings = ReadForeignSettings(contents, &names, diagnostics);
  const IbSubnet subnet = ParseIbNetDiscover(contents, diagnostics);
  if (!diagnostics->empty()) return {};
  return TierFinder(subnet, settings, diagnostics).Find();
}

}  // namespace closeknit
