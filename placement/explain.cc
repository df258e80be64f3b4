#include "placement/explain.h"

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace closeknit {
namespace {

constexpr char kPayload[] = "closeknit/unplaceable";
constexpr char kSeparator = '\x1f';

std::string Plural(int64_t count, absl::string_view noun) { return absl::StrCat(count, " ", noun, count == 1 ? "" : "s"); }

struct Words {
  Hindrance hindrance;
  absl::string_view text;
};
constexpr Words kHindrances[] = {
    {Hindrance::kBusy, "allocated"},
    {Hindrance::kDrained, "drained"},
    {Hindrance::kDown, "down"},
    {Hindrance::kResting, "resting after a failed start"},
    {Hindrance::kReserved, "reserved"},
    {Hindrance::kMissingGpus, "with a GPU missing"},
    {Hindrance::kRailDown, "with a rail down"},
    {Hindrance::kExcluded, "excluded"},
    {Hindrance::kNodelist, "not in the node list"},
    {Hindrance::kFeatures, "without the features"},
    {Hindrance::kPartition, "in other partitions"},
    {Hindrance::kTooFewGpus, "with too few GPUs"},
};

// "12 allocated (10 of them to job 4711), 9 drained, 4 with a rail down": what keeps the other hosts of a domain from it.
std::string Obstacles(const ClusterView& view, const GangRequest& request, const Domain& domain) {
  std::map<Hindrance, int> counts;
  std::map<JobId, int> holders;
  for (HostId host = domain.first_host; host < domain.end_host; ++host.value) {
    const Hindrance hindrance = HindranceOf(view, request, host);
    if (hindrance == Hindrance::kNone) continue;
    ++counts[hindrance];
    if (hindrance != Hindrance::kBusy) continue;
    for (const Allocation& allocation : view.allocations(host)) ++holders[allocation.job];
  }
  std::vector<std::string> parts;
  for (const Words& words : kHindrances) {
    const auto found = counts.find(words.hindrance);
    if (found == counts.end()) continue;
    std::string part = absl::StrCat(found->second, " ", words.text);
    if (words.hindrance == Hindrance::kBusy && !holders.empty()) {
      const auto most = std::max_element(holders.begin(), holders.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
      absl::StrAppend(&part, holders.size() == 1 ? absl::StrCat(" to job ", most->first)
                                                 : absl::StrCat(" (", most->second, " to job ", most->first, ")"));
    }
    parts.push_back(std::move(part));
  }
  return absl::StrJoin(parts, ", ");
}

std::string Needs(const GangRequest& request) {
  std::string text = absl::StrCat("needs ", Plural(request.slots, "host"));
  if (request.gpus_per_slot > 0) absl::StrAppend(&text, " with ", Plural(request.gpus_per_slot, "free GPU"), " each");
  if (request.spares > 0) absl::StrAppend(&text, " and ", Plural(request.spares, "spare"));
  return text;
}

std::string NeverNeeds(const GangRequest& request) {
  std::string text = absl::StrCat("needs ", Plural(request.slots, "host"));
  if (request.gpus_per_slot > 0) absl::StrAppend(&text, " with ", Plural(request.gpus_per_slot, "GPU"), " each");
  if (request.spares > 0) absl::StrAppend(&text, " and ", Plural(request.spares, "spare"));
  return text;
}

DomainId Freest(const Usable& usable, Tier tier) {
  const absl::Span<const DomainId> domains = usable.fabric().DomainsAt(tier);
  return *std::max_element(domains.begin(), domains.end(), [&](DomainId a, DomainId b) { return usable.Count(a) < usable.Count(b); });
}

// The least number of domains of a tier that hold n usable hosts; 0: all of them do not.
int Cover(const Usable& usable, Tier tier, int n) {
  std::vector<int> counts;
  for (const DomainId id : usable.fabric().DomainsAt(tier)) counts.push_back(usable.Count(id));
  std::sort(counts.rbegin(), counts.rend());
  for (size_t i = 0; i < counts.size(); ++i) {
    n -= counts[i];
    if (n <= 0) return static_cast<int>(i) + 1;
  }
  return 0;
}

std::string LimitsText(const Fabric& fabric, const GangRequest& request) {
  std::vector<std::string> parts;
  for (Tier t = 1; t <= fabric.top(); ++t) {
    if (const auto most = request.max_domains.find(t); most != request.max_domains.end()) {
      parts.push_back(absl::StrCat("at most ", Plural(most->second, fabric.TierName(t))));
    }
    if (const auto unit = request.multiple_of.find(t); unit != request.multiple_of.end()) {
      parts.push_back(absl::StrCat("a multiple of ", Plural(unit->second, "host"), " a ", fabric.TierName(t)));
    }
  }
  return absl::StrJoin(parts, " and ");
}

}  // namespace

absl::Status UnplaceableError(absl::StatusCode code, const Unplaceable& unplaceable) {
  std::string message = unplaceable.why;
  if (!unplaceable.nearest.empty()) absl::StrAppend(&message, "; fits with ", unplaceable.nearest);
  absl::Status status(code, message);
  status.SetPayload(kPayload, absl::Cord(absl::StrJoin(std::make_tuple(unplaceable.why, unplaceable.nearest, unplaceable.fitting_slots,
                                                                       unplaceable.fitting_tier, unplaceable.fitting_domains),
                                                       std::string(1, kSeparator))));
  return status;
}

std::optional<Unplaceable> GetUnplaceable(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return std::nullopt;
  const std::vector<std::string> fields = absl::StrSplit(std::string(*payload), kSeparator);
  Unplaceable unplaceable;
  if (fields.size() != 5 || !absl::SimpleAtoi(fields[2], &unplaceable.fitting_slots) ||
      !absl::SimpleAtoi(fields[3], &unplaceable.fitting_tier) || !absl::SimpleAtoi(fields[4], &unplaceable.fitting_domains)) {
    return std::nullopt;
  }
  unplaceable.why = fields[0];
  unplaceable.nearest = fields[1];
  return unplaceable;
}

absl::Status Explain(const ClusterView& view, const GangRequest& request, const Usable& now, bool fits_idle) {
  const Fabric& fabric = view.fabric();
  const int needed = request.slots + request.spares;
  const Usable idle(view, request, Usable::When::kIdle);
  const Usable& usable = fits_idle ? now : idle;
  const std::string needs = fits_idle ? Needs(request) : NeverNeeds(request);
  const absl::StatusCode code = fits_idle ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kFailedPrecondition;
  Unplaceable answer;

  const int total = usable.Count(fabric.root());
  if (total < needed) {
    // Not even the whole fabric has them.
    const std::string obstacles = Obstacles(view, request, fabric.domain(fabric.root()));
    if (fits_idle) {
      answer.why =
          absl::StrCat(needs, "; ", total, " of ", fabric.hosts().size(), " can take them", obstacles.empty() ? "" : ": ", obstacles);
    } else {
      answer.why =
          absl::StrCat(needs, "; the fabric has ", total, " such of ", Plural(static_cast<int64_t>(fabric.hosts().size()), "host"));
    }
    answer.fitting_slots = std::max(0, total - request.spares);
    if (answer.fitting_slots > 0) answer.nearest = absl::StrCat(request.slots - answer.fitting_slots, " fewer hosts");
    return UnplaceableError(code, answer);
  }
  if (request.required_tier.has_value()) {
    const Tier tier = *request.required_tier;
    const DomainId freest = Freest(usable, tier);
    const int room = usable.Count(freest);
    if (room < needed) {
      const std::string obstacles = fits_idle ? Obstacles(view, request, fabric.domain(freest)) : "";
      answer.why = absl::StrCat(needs, " in one ", fabric.TierName(tier), "; the freest, ", fabric.domain(freest).name, ", has ", room,
                                fits_idle ? " free" : " in all", obstacles.empty() ? "" : ": ", obstacles);
      answer.fitting_slots = std::max(0, room - request.spares);
      answer.fitting_tier = tier;
      answer.fitting_domains = Cover(usable, tier, needed);
      answer.nearest = absl::StrCat(request.slots - answer.fitting_slots, " fewer hosts, or across ",
                                    Plural(answer.fitting_domains, fabric.TierName(tier)));
      return UnplaceableError(code, answer);
    }
  }
  for (Tier t = fabric.top(); t >= 1; --t) {
    const auto most = request.max_domains.find(t);
    if (most == request.max_domains.end()) continue;
    const int cover = Cover(usable, t, request.slots);
    if (cover <= most->second) continue;
    answer.why = absl::StrCat(needs, " in at most ", Plural(most->second, fabric.TierName(t)), "; ", total, " are free, in no fewer than ",
                              Plural(cover, fabric.TierName(t)));
    answer.fitting_tier = t;
    answer.fitting_domains = cover;
    answer.nearest = absl::StrCat("max_domains ", fabric.TierName(t), "=", cover);
    return UnplaceableError(code, answer);
  }
  const std::string obstacles = fits_idle ? Obstacles(view, request, fabric.domain(fabric.root())) : "";
  answer.why = absl::StrCat(needs, " with ", LimitsText(fabric, request), "; ", total, " hosts are ", fits_idle ? "free" : "there",
                            ", but not grouped so", obstacles.empty() ? "" : ": ", obstacles);
  return UnplaceableError(code, answer);
}

}  // namespace closeknit
