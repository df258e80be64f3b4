#include "agents/gang_hosts.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "proto/base/host_list.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

std::string JsonString(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      out += c;
    }
  }
  return out + '"';
}

absl::Status AddTier(const v1::GangTier& tier, std::vector<GangHost>* hosts) {
  ASSIGN_OR_RETURN(const std::vector<std::string> domains, ExpandHostList(tier.domains()));
  const auto contradiction = [&](size_t slots) {
    return absl::InvalidArgumentError(
        absl::StrCat("gang map: tier ", tier.tier(), " has domains of ", slots, " slots, the gang has ", hosts->size()));
  };
  if (tier.slots_size() != 1 && static_cast<size_t>(tier.slots_size()) != domains.size()) return contradiction(tier.slots_size());
  size_t next = 0;
  for (size_t i = 0; i < domains.size(); ++i) {
    const uint32_t count = tier.slots(tier.slots_size() == 1 ? 0 : static_cast<int>(i));
    if (count > hosts->size() - next) return contradiction(next + count);
    for (uint32_t j = 0; j < count; ++j) (*hosts)[next++].domains.emplace_back(tier.tier(), domains[i]);
  }
  return next == hosts->size() ? absl::OkStatus() : contradiction(next);
}

}  // namespace

absl::StatusOr<std::vector<GangHost>> GangHosts(const v1::GangMap& map) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, ExpandHostList(map.hosts()));
  std::vector<GangHost> hosts(names.size());
  for (size_t i = 0; i < names.size(); ++i) hosts[i].name = std::move(names[i]);
  for (const v1::GangTier& tier : map.tiers()) RETURN_IF_ERROR(AddTier(tier, &hosts));
  return hosts;
}

std::string HostFile(const std::vector<GangHost>& hosts, uint32_t ranks_per_node) {
  std::string out = "# hosts of the gang in rank order\n";
  for (size_t i = 0; i < hosts.size(); ++i) {
    const size_t first = i * ranks_per_node;
    absl::StrAppend(&out, hosts[i].name, " slots=", ranks_per_node, " # ranks=", first, "-", first + ranks_per_node - 1);
    for (const auto& [tier, domain] : hosts[i].domains) absl::StrAppend(&out, " ", tier, "=", domain);
    out += '\n';
  }
  return out;
}

std::string PlacementJson(const v1::SlotId& id, const std::vector<GangHost>& hosts, uint32_t ranks_per_node) {
  std::string out = absl::StrCat("{\"job_id\": ", id.job_id(), ", \"attempt\": ", id.attempt(), ", \"ranks_per_node\": ", ranks_per_node,
                                 ", \"hosts\": [\n");
  for (size_t i = 0; i < hosts.size(); ++i) {
    const size_t first = i * ranks_per_node;
    absl::StrAppend(&out, "{\"name\": ", JsonString(hosts[i].name), ", \"ranks\": [", first, ", ", first + ranks_per_node - 1,
                    "], \"domains\": {");
    absl::string_view comma = "";
    for (const auto& [tier, domain] : hosts[i].domains) {
      absl::StrAppend(&out, comma, JsonString(tier), ": ", JsonString(domain));
      comma = ", ";
    }
    absl::StrAppend(&out, "}}", i + 1 < hosts.size() ? ",\n" : "\n");
  }
  return out + "]}\n";
}

}  // namespace closeknit
