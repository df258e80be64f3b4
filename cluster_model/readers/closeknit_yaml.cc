// Closeknit's own description; docs/topology.md shows it by example.
#include <algorithm>
#include <array>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cluster_model/readers/formats.h"
#include "cluster_model/readers/host_settings.h"
#include "cluster_model/readers/name_pattern.h"
#include "cluster_model/readers/yaml_tree.h"

namespace closeknit {
namespace {

constexpr absl::string_view kTopKeys[] = {"version", "name", "tiers", "hosts", "fabric", "overrides"};
constexpr absl::string_view kTierKeys[] = {"name", "uplinks"};
constexpr absl::string_view kSettingKeys[] = {"gpus", "rails", "nics", "features", "partitions"};
constexpr absl::string_view kUsualTiers[] = {"rack", "pod", "core"};
constexpr int kVersion = 1;
constexpr int kNone = -1;
constexpr int kRailsAsNics = -1;  // not said: as many as NICs
constexpr size_t kMaxNameBytes = 128;

// What the defaults, an entry or an override says about hosts; what is not said stays as it is.
struct HostSettings {
  std::optional<int> gpus, rails;
  std::optional<Uplinks> nics;
  std::optional<std::vector<std::string>> features, partitions;

  static HostSettings Read(const YamlMap& map) {
    return {map.Int("gpus", 1, kMaxHostGpus), map.Int("rails", 0, kMaxHostRails), map.Links("nics"), map.Words("features"),
            map.Words("partitions")};
  }
  void ApplyTo(Host* host) const {
    if (gpus.has_value()) host->gpus = *gpus;
    if (rails.has_value()) host->rails = *rails;
    if (nics.has_value()) host->nics = *nics;
    if (features.has_value()) host->features = *features;
    if (partitions.has_value()) host->partitions = *partitions;
  }
};

std::vector<absl::string_view> WithSettingKeys(std::vector<absl::string_view> keys) {
  keys.insert(keys.end(), std::begin(kSettingKeys), std::end(kSettingKeys));
  return keys;
}

class YamlReader {
 public:
  explicit YamlReader(Diagnostics* diagnostics) : diagnostics_(diagnostics), lists_(diagnostics) {}

  FabricDescription Read(const YamlNode& root) {
    const YamlMap map(root, "the description", kTopKeys, diagnostics_);
    map.Int("version", kVersion, kVersion);
    out_.name = map.Text("name", kMaxNameBytes).value_or("");
    ReadTiers(map);
    ReadDefaults(map);
    map.Require("fabric");
    if (!diagnostics_->empty()) return {};
    for (const YamlNode& entry : map.List("fabric")) {
      ReadEntry(entry);
      if (lists_.exhausted()) return {};
    }
    for (const YamlNode& entry : map.List("overrides")) ReadOverride(entry);
    if (!diagnostics_->empty()) return {};
    Finish();
    return std::move(out_);
  }

 private:
  // A domain under construction, beside out_.domains.
  struct DomainState {
    Tier tier = 0;
    int parent = kNone;
    Position at;        // where it was named first
    int expansion = 0;  // the last one that named it
  };
  // A domain with those above it, by tier; kNone where there is none (yet).
  using Branch = std::array<int, kMaxTiers + 1>;
  // A name that a pattern gave, and the branch it belongs to.
  struct Dealt {
    size_t branch = 0;
    std::string name;
  };

  int tiers() const { return static_cast<int>(tier_names_.size()); }

  void ReadTiers(const YamlMap& map) {
    tier_uplinks_.assign(kMaxTiers + 1, Uplinks{});
    const YamlNode* node = map.Find("tiers");
    if (node == nullptr) {
      for (const absl::string_view name : kUsualTiers) tier_names_.emplace_back(name);
      return;
    }
    tiers_given_ = true;
    for (const YamlNode& entry : map.List("tiers")) ReadTier(entry);
    if (tiers() > kMaxTiers) diagnostics_->Add(node->at, absl::StrCat(tiers(), " tiers; at most ", kMaxTiers));
    if (tiers() > 0 && tiers() <= kMaxTiers && tier_uplinks_[tiers()].count != 0) {
      diagnostics_->Add(node->at, absl::StrCat("the last tier, ", tier_names_.back(),
                                               ", is the root: it has no uplinks; take them out, or add the "
                                               "tier that they lead to"));
    }
  }

  void ReadTier(const YamlNode& entry) {
    const YamlMap tier(entry, "a tier", kTierKeys, diagnostics_);
    tier.Require("name");
    const std::optional<std::string> name = tier.Text("name", 32);
    if (!name.has_value()) return;
    const Position at = tier.Find("name")->at;
    const bool is_word = absl::c_all_of(*name, [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; });
    if (!is_word) return diagnostics_->Add(at, absl::StrCat("tier name '", *name, "'; letters, digits, '-' and '_' are accepted"));
    if (*name == "host" || *name == "uplinks" || absl::c_linear_search(kSettingKeys, *name)) {
      return diagnostics_->Add(at, absl::StrCat("a tier cannot be named '", *name, "': that key has a meaning of its own"));
    }
    if (absl::c_linear_search(tier_names_, *name)) return diagnostics_->Add(at, absl::StrCat("tier '", *name, "' is there twice"));
    tier_names_.push_back(*name);
    const std::optional<Uplinks> uplinks = tier.Links("uplinks");
    if (uplinks.has_value() && tiers() <= kMaxTiers) tier_uplinks_[tiers()] = *uplinks;
  }

  void ReadDefaults(const YamlMap& map) {
    default_host_.rails = kRailsAsNics;
    const YamlNode* node = map.Find("hosts");
    if (node == nullptr) return;
    const std::vector<absl::string_view> keys = WithSettingKeys({});
    HostSettings::Read(YamlMap(*node, "'hosts' (the defaults of every host)", keys, diagnostics_)).ApplyTo(&default_host_);
  }

  // {pod: "pod[1-8]", rack: "{pod}r[001-192]", host: "{rack}h[1-2]", ...}
  void ReadEntry(const YamlNode& node) {
    const int errors = diagnostics_->count();
    std::vector<absl::string_view> keys = {"host", "uplinks"};
    for (const std::string& name : tier_names_) keys.push_back(name);
    keys = WithSettingKeys(std::move(keys));
    const YamlMap entry(node, "an entry of 'fabric'", keys, diagnostics_);
    entry.Require("host");
    Host host = default_host_;
    HostSettings::Read(entry).ApplyTo(&host);
    const std::vector<Tier> levels = Levels(entry);
    const std::vector<std::optional<Uplinks>> uplinks = ReadUplinks(entry, levels);
    if (diagnostics_->count() != errors) return;

    std::vector<Branch> branches(1);
    branches[0].fill(kNone);
    std::vector<std::pair<absl::string_view, Tier>> above;
    for (const Tier tier : levels) {
      const std::optional<std::vector<Dealt>> dealt = Deal(*entry.Find(tier_names_[tier - 1]), tier_names_[tier - 1], above, branches);
      if (!dealt.has_value()) return;
      branches = AddDomains(*dealt, tier, entry.Find(tier_names_[tier - 1])->text_at(), uplinks[tier], branches);
      above.emplace_back(tier_names_[tier - 1], tier);
    }
    const std::optional<std::vector<Dealt>> dealt = Deal(*entry.Find("host"), "host", above, branches);
    if (dealt.has_value() && diagnostics_->count() == errors) AddHosts(*dealt, host, entry.Find("host")->text_at(), branches);
  }

  // The tiers that an entry names, from the top. All below the highest one must be there.
  std::vector<Tier> Levels(const YamlMap& entry) {
    std::vector<Tier> levels;
    for (Tier tier = tiers(); tier >= 1; --tier) {
      if (entry.Find(tier_names_[tier - 1]) != nullptr) levels.push_back(tier);
    }
    // The root need not be named; without `tiers`, the highest tier that is named is the highest there is.
    const Tier needed = tiers_given_ ? tiers() - 1 : std::max(1, levels.empty() ? 0 : levels[0]);
    for (Tier tier = 1; tier <= needed; ++tier) {
      if (absl::c_linear_search(levels, tier)) continue;
      diagnostics_->Add(entry.at(),
                        absl::StrCat("key '", tier_names_[tier - 1], "' is missing; an entry names the ",
                                     absl::StrJoin(tier_names_.begin(), tier_names_.begin() + needed, ", the "), " and the host"));
    }
    if (!tiers_given_ && !levels.empty()) {
      if (highest_used_ == 0) highest_used_ = levels[0];
      if (levels[0] != highest_used_) {
        diagnostics_->Add(entry.at(), absl::StrCat("this entry's highest tier is ", tier_names_[levels[0] - 1], ", that of earlier ones ",
                                                   tier_names_[highest_used_ - 1], "; name the same tiers in all, or give 'tiers'"));
      }
    }
    return levels;
  }

  // uplinks: {rack: 8x400, pod: 64x400}
  std::vector<std::optional<Uplinks>> ReadUplinks(const YamlMap& entry, absl::Span<const Tier> levels) {
    std::vector<std::optional<Uplinks>> uplinks(kMaxTiers + 1);
    const YamlNode* node = entry.Find("uplinks");
    if (node == nullptr) return uplinks;
    std::vector<absl::string_view> names;
    for (const Tier tier : levels) {
      if (!(tiers_given_ && tier == tiers())) names.push_back(tier_names_[tier - 1]);
    }
    if (names.empty()) {
      diagnostics_->Add(node->at, "there is no tier with uplinks in this entry; give uplinks of the tiers below the root");
      return uplinks;
    }
    const YamlMap map(*node, "'uplinks'", names, diagnostics_);
    for (const Tier tier : levels) uplinks[tier] = map.Links(tier_names_[tier - 1]);
    return uplinks;
  }

  // The names that a pattern gives to the branches. A pattern is expanded once for each domain of the lowest tier that it refers to, and
  // the names dealt evenly to the branches below that domain.
  std::optional<std::vector<Dealt>> Deal(const YamlNode& node, absl::string_view key,
                                         absl::Span<const std::pair<absl::string_view, Tier>> above, absl::Span<const Branch> branches) {
    if (node.kind != YamlNode::Kind::kScalar) {
      diagnostics_->Add(node.at, absl::StrCat(key, ": ", KindName(node.kind), " is not accepted; a host list, e.g. \"h[1-4]\""));
      return std::nullopt;
    }
    const std::optional<NamePattern> pattern = NamePattern::Parse(node.scalar, node.text_at(), above, diagnostics_);
    if (!pattern.has_value()) return std::nullopt;
    std::vector<Dealt> dealt;
    for (size_t begin = 0; begin < branches.size();) {
      size_t end = branches.size();
      if (pattern->lowest_tier().has_value()) {
        const Tier tier = *pattern->lowest_tier();
        for (end = begin + 1; end < branches.size() && branches[end][tier] == branches[begin][tier];) ++end;
      }
      const auto name_of = [&](Tier tier) -> absl::string_view { return out_.domains[branches[begin][tier]].name; };
      std::optional<std::vector<std::string>> names = pattern->Expand(name_of, &lists_, diagnostics_);
      if (!names.has_value()) return std::nullopt;
      const size_t groups = end - begin;
      if (names->size() % groups != 0) {
        diagnostics_->Add(node.text_at(), absl::StrCat(key, ": ", names->size(), " names cannot be dealt evenly to ", groups,
                                                       " domains of tier ", above.back().first, "; give a multiple of ", groups,
                                                       ", or put {", above.back().first, "} into the names for a list of each"));
        return std::nullopt;
      }
      const size_t each = names->size() / groups;
      for (size_t i = 0; i < names->size(); ++i) dealt.push_back({begin + i / each, std::move((*names)[i])});
      begin = end;
    }
    return dealt;
  }

  std::vector<Branch> AddDomains(absl::Span<const Dealt> dealt, Tier tier, Position at, const std::optional<Uplinks>& uplinks,
                                 absl::Span<const Branch> branches) {
    ++expansion_;
    std::vector<Branch> below;
    below.reserve(dealt.size());
    for (const Dealt& item : dealt) {
      Branch branch = branches[item.branch];
      const int parent = tier < kMaxTiers ? branch[tier + 1] : kNone;
      branch[tier] = FindOrAddDomain(item.name, tier, parent, at, uplinks);
      if (branch[tier] != kNone) below.push_back(branch);
    }
    return below;
  }

  // kNone: reported.
  int FindOrAddDomain(const std::string& name, Tier tier, int parent, Position at, const std::optional<Uplinks>& uplinks) {
    const auto [it, inserted] = domain_by_name_.emplace(name, static_cast<int>(out_.domains.size()));
    const int index = it->second;
    if (!inserted) return CheckSameDomain(index, name, tier, parent, at, uplinks) ? index : kNone;
    out_.domains.push_back({.name = name, .uplinks = uplinks.value_or(tier_uplinks_[tier])});
    states_.push_back({tier, parent, at, expansion_});
    if (parent != kNone) out_.domains[parent].child_domains.push_back(index);
    return index;
  }

  // A domain may be named by several entries, if they agree.
  bool CheckSameDomain(int index, const std::string& name, Tier tier, int parent, Position at, const std::optional<Uplinks>& uplinks) {
    DomainState& state = states_[index];
    const std::string first = absl::StrCat(tier_names_[state.tier - 1], " ", name, " (line ", state.at.line, ")");
    if (state.tier != tier) {
      diagnostics_->Add(at, absl::StrCat("there is already a ", first, "; names of domains are unique over all tiers"));
    } else if (state.expansion == expansion_) {
      diagnostics_->Add(at, absl::StrCat(tier_names_[tier - 1], " ", name, " is there twice; do ranges overlap, or is {",
                                         tier < tiers() ? tier_names_[tier] : "...", "} missing in the names?"));
    } else if (state.parent != parent) {
      diagnostics_->Add(at, absl::StrCat(first, " is already below ", state.parent == kNone ? "the root" : out_.domains[state.parent].name,
                                         "; a domain is below one"));
    } else if (uplinks.has_value() && *uplinks != out_.domains[index].uplinks) {
      diagnostics_->Add(at, absl::StrCat(first, " was given other uplinks before; give them once"));
    } else {
      state.expansion = expansion_;
      return true;
    }
    return false;
  }

  void AddHosts(absl::Span<const Dealt> dealt, const Host& host, Position at, absl::Span<const Branch> branches) {
    for (const Dealt& item : dealt) {
      if (out_.hosts.size() == kMaxFabricHosts) return diagnostics_->Add(at, absl::StrCat("more than ", kMaxFabricHosts, " hosts"));
      const int index = static_cast<int>(out_.hosts.size());
      const auto [first, inserted] = host_by_name_.emplace(item.name, index);
      if (!inserted) {
        const Position before = host_at_[first->second];
        const bool here = before.line == at.line && before.column == at.column;
        diagnostics_->Add(at, absl::StrCat("duplicate host: ", item.name, " is described ",
                                           here ? std::string("twice here") : absl::StrCat("already in line ", before.line),
                                           "; do ranges overlap, or is a placeholder missing?"));
        continue;
      }
      out_.hosts.push_back(host);
      out_.hosts.back().name = item.name;
      host_at_.push_back(at);
      const int rack = branches[item.branch][1];
      (rack == kNone ? hosts_of_root_ : out_.domains[rack].hosts).push_back(index);
    }
  }

  void ReadOverride(const YamlNode& node) {
    const std::vector<absl::string_view> keys = WithSettingKeys({"hosts"});
    const YamlMap entry(node, "an entry of 'overrides'", keys, diagnostics_);
    const HostSettings settings = HostSettings::Read(entry);
    const YamlNode* hosts = entry.Require("hosts");
    if (hosts == nullptr) return;
    if (hosts->kind != YamlNode::Kind::kScalar) {
      return diagnostics_->Add(hosts->at, absl::StrCat("hosts: ", KindName(hosts->kind), " is not accepted; a host list, e.g. \"h[1-4]\""));
    }
    const std::optional<std::vector<std::string>> names = lists_.Expand(hosts->scalar, hosts->text_at());
    if (!names.has_value()) return;
    for (const std::string& name : *names) {
      const auto host = host_by_name_.find(name);
      if (host == host_by_name_.end()) {
        diagnostics_->Add(hosts->text_at(), absl::StrCat("unknown host ", name, "; an override is of hosts that 'fabric' describes"));
      } else {
        settings.ApplyTo(&out_.hosts[host->second]);
      }
    }
  }

  // The root, the tier names, and what was left open.
  void Finish() {
    for (Host& host : out_.hosts) {
      if (host.rails == kRailsAsNics) host.rails = host.nics.count <= kMaxHostRails ? static_cast<int>(host.nics.count) : 0;
    }
    for (int d = 0; d < static_cast<int>(states_.size()); ++d) {
      if (states_[d].parent == kNone) out_.roots.push_back(d);
    }
    if (!tiers_given_) {
      // One domain at the highest tier is the root; several are joined below one.
      out_.tier_names.assign(tier_names_.begin(), tier_names_.begin() + highest_used_);
      return;
    }
    out_.tier_names = tier_names_;
    const bool named = absl::c_any_of(states_, [&](const DomainState& state) { return state.tier == tiers(); });
    if (!named) return AddRoot(tier_names_.back());
    if (out_.roots.size() > 1 || !hosts_of_root_.empty()) {
      diagnostics_->Add(states_[out_.roots.back()].at,
                        absl::StrCat("not everything is below one domain; the last tier, ", tier_names_.back(),
                                     ", is the root, one domain: name it in every entry or in none, or add a tier above"));
    }
  }

  // A domain above all roots, or the only one.
  void AddRoot(std::string name) {
    while (domain_by_name_.contains(name)) name += "-root";
    out_.domains.push_back({.name = std::move(name), .child_domains = std::move(out_.roots), .hosts = std::move(hosts_of_root_)});
    out_.roots = {static_cast<int>(out_.domains.size()) - 1};
  }

  Diagnostics* const diagnostics_;
  NameLists lists_;
  FabricDescription out_;
  std::vector<std::string> tier_names_;  // from tier 1 up
  std::vector<Uplinks> tier_uplinks_;    // [tier]
  bool tiers_given_ = false;
  Tier highest_used_ = 0;
  Host default_host_;
  std::vector<DomainState> states_;
  std::vector<Position> host_at_;
  std::vector<int> hosts_of_root_;  // of entries that name no tier
  absl::flat_hash_map<std::string, int> domain_by_name_;
  absl::flat_hash_map<std::string, int> host_by_name_;
  int expansion_ = 0;
};

}  // namespace

FabricDescription ReadCloseknitYaml(absl::string_view contents, Diagnostics* diagnostics) {
  const std::optional<YamlNode> root = ParseYaml(contents, diagnostics);
  if (!root.has_value()) return {};
  return YamlReader(diagnostics).Read(*root);
}

}  // namespace closeknit
