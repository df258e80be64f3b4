#include "client/commands.h"

#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/suggest.h"
#include "google/protobuf/descriptor.h"

namespace closeknit {
namespace {

// Values whose short name is listed; an unknown name is answered with the nearest.
absl::StatusOr<std::vector<int>> ParseEnumList(const google::protobuf::EnumDescriptor& type, absl::string_view prefix,
                                               const std::string& text) {
  std::vector<int> values;
  for (const absl::string_view item : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    if (absl::EqualsIgnoreCase(item, "all")) return std::vector<int>();
    std::string name = absl::AsciiStrToUpper(item);
    for (char& c : name) c = c == '-' ? '_' : c;
    const auto* value = type.FindValueByName(absl::StrCat(prefix, name));
    if (value == nullptr || value->number() == 0) {
      std::vector<std::string> names;
      for (int i = 1; i < type.value_count(); ++i) names.push_back(absl::AsciiStrToLower(type.value(i)->name().substr(prefix.size())));
      return absl::InvalidArgumentError(absl::StrCat("'", item, "' is no state", DidYouMean(absl::AsciiStrToLower(item), names)));
    }
    values.push_back(value->number());
  }
  return values;
}

template <typename E>
absl::StatusOr<std::vector<E>> Cast(const absl::StatusOr<std::vector<int>>& numbers) {
  if (!numbers.ok()) return numbers.status();
  std::vector<E> values;
  for (const int number : *numbers) values.push_back(static_cast<E>(number));
  return values;
}

}  // namespace

std::string CallerName() {
  const passwd* entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_name : absl::StrCat(geteuid());
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t max_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
  std::string contents;
  char buffer[65536];
  while (file.read(buffer, sizeof(buffer)) || file.gcount() > 0) {
    contents.append(buffer, static_cast<size_t>(file.gcount()));
    if (contents.size() > max_bytes) return absl::InvalidArgumentError(absl::StrCat(path, " is larger than ", max_bytes, " bytes"));
  }
  if (file.bad()) return absl::UnavailableError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  return contents;
}

absl::StatusOr<std::vector<v1::JobState>> ParseJobStates(const std::string& text) {
  return Cast<v1::JobState>(ParseEnumList(*v1::JobState_descriptor(), "JOB_STATE_", text));
}

absl::StatusOr<std::vector<v1::NodeState>> ParseNodeStates(const std::string& text) {
  return Cast<v1::NodeState>(ParseEnumList(*v1::NodeState_descriptor(), "NODE_STATE_", text));
}

}  // namespace closeknit
