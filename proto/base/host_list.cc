#include "proto/base/host_list.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr size_t kMaxDigits = 18;  // fits int64_t

bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; }

std::string Padded(int64_t number, size_t width) { return absl::StrFormat("%0*d", static_cast<int>(width), number); }

// Reads one list from left to right.
class Expander {
 public:
  explicit Expander(absl::string_view list) : list_(list) {}

  size_t position() const { return position_; }

  absl::StatusOr<std::vector<std::string>> Run() {
    std::vector<std::string> hosts;
    SkipSeparators();
    while (position_ < list_.size()) {
      ASSIGN_OR_RETURN(std::vector<std::string> names, Name());
      if (hosts.size() + names.size() > kMaxHostListSize) return TooLong();
      std::move(names.begin(), names.end(), std::back_inserter(hosts));
      if (position_ < list_.size() && !AtSeparator()) return Unexpected();
      SkipSeparators();
    }
    return hosts;
  }

 private:
  bool AtSeparator() const { return list_[position_] == ',' || absl::ascii_isspace(list_[position_]); }

  void SkipSeparators() {
    while (position_ < list_.size() && AtSeparator()) ++position_;
  }

  static absl::Status Error(absl::string_view what) { return absl::InvalidArgumentError(what); }

  absl::Status TooLong() const { return Error(absl::StrCat("more than ", kMaxHostListSize, " hosts")); }

  absl::Status NameTooLong() const { return Error(absl::StrCat("a host name of more than ", kMaxHostNameLength, " characters")); }

  absl::Status Unexpected() const {
    const unsigned char c = list_[position_];
    if (c < 0x20 || c >= 0x7f) return Error(absl::StrFormat("unexpected byte 0x%02x in a host name", c));
    return Error(absl::StrFormat("unexpected '%c'; host names are letters, digits, '-', '_' and '.'", c));
  }

  // One name with its brackets, expanded.
  absl::StatusOr<std::vector<std::string>> Name() {
    std::vector<std::string> names = {""};
    const size_t start = position_;
    while (position_ < list_.size() && !AtSeparator()) {
      const char c = list_[position_];
      if (c == '[') {
        ASSIGN_OR_RETURN(const std::vector<std::string> numbers, Bracket());
        if (names.size() * numbers.size() > kMaxHostListSize) return TooLong();
        if (names.back().size() + numbers.back().size() > kMaxHostNameLength) return NameTooLong();
        std::vector<std::string> product;
        product.reserve(names.size() * numbers.size());
        for (const std::string& name : names) {
          for (const std::string& number : numbers) product.push_back(absl::StrCat(name, number));
        }
        names = std::move(product);
      } else if (IsNameCharacter(c)) {
        const size_t text = position_;
        while (position_ < list_.size() && IsNameCharacter(list_[position_])) ++position_;
        if (names.back().size() + position_ - text > kMaxHostNameLength) return NameTooLong();
        for (std::string& name : names) absl::StrAppend(&name, list_.substr(text, position_ - text));
      } else {
        return Unexpected();
      }
    }
    if (position_ == start) return Error("empty host name");
    return names;
  }

  // "[1-3,07]", expanded.
  absl::StatusOr<std::vector<std::string>> Bracket() {
    std::vector<std::string> numbers;
    ++position_;
    while (true) {
      ASSIGN_OR_RETURN(const absl::string_view first, Digits());
      absl::string_view last = first;
      if (position_ < list_.size() && list_[position_] == '-') {
        ++position_;
        ASSIGN_OR_RETURN(last, Digits());
      }
      RETURN_IF_ERROR(AppendRange(first, last, &numbers));
      if (position_ >= list_.size()) return Error("'[' without its ']'");
      const char c = list_[position_++];
      if (c == ']') return numbers;
      if (c != ',') {
        --position_;
        return Error("expected ',', '-' or ']' in brackets");
      }
    }
  }

  absl::StatusOr<absl::string_view> Digits() {
    const size_t start = position_;
    while (position_ < list_.size() && absl::ascii_isdigit(list_[position_])) ++position_;
    if (position_ == start) return Error("expected a number in brackets");
    if (position_ - start > kMaxDigits) return Error(absl::StrCat("a number of more than ", kMaxDigits, " digits"));
    return list_.substr(start, position_ - start);
  }

  absl::Status AppendRange(absl::string_view first, absl::string_view last, std::vector<std::string>* numbers) const {
    int64_t low = 0, high = 0;
    if (!absl::SimpleAtoi(first, &low) || !absl::SimpleAtoi(last, &high)) return Error("not a number");
    if (high < low) return Error(absl::StrCat("the range ", first, "-", last, " runs down"));
    if (static_cast<uint64_t>(high - low) >= kMaxHostListSize - std::min(numbers->size(), kMaxHostListSize)) return TooLong();
    for (int64_t number = low; number <= high; ++number) numbers->push_back(Padded(number, first.size()));
    return absl::OkStatus();
  }

  const absl::string_view list_;
  size_t position_ = 0;
};

// A name split at its last run of digits: "r01h2.lan" is {"r01h", "2", ".lan"}.
struct NumberedName {
  absl::string_view prefix, digits, suffix;
  int64_t number = 0;
};

NumberedName Split(absl::string_view name) {
  size_t end = name.size();
  while (end > 0 && !absl::ascii_isdigit(name[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && absl::ascii_isdigit(name[begin - 1]) && end - begin < kMaxDigits) --begin;
  NumberedName split = {name.substr(0, begin), name.substr(begin, end - begin), name.substr(end)};
  if (end == 0 || !absl::SimpleAtoi(split.digits, &split.number)) return {name, "", ""};
  return split;
}

// Whether `number`, printed with the width of a range's first number, gives `digits` again.
bool SameWidth(const NumberedName& name, size_t width) { return Padded(name.number, width) == name.digits; }

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandHostList(absl::string_view list, size_t* error_offset) {
  Expander expander(list);
  absl::StatusOr<std::vector<std::string>> hosts = expander.Run();
  if (!hosts.ok()) *error_offset = expander.position();
  return hosts;
}

absl::StatusOr<std::vector<std::string>> ExpandHostList(absl::string_view list) {
  size_t offset = 0;
  absl::StatusOr<std::vector<std::string>> hosts = ExpandHostList(list, &offset);
  if (hosts.ok()) return hosts;
  return absl::InvalidArgumentError(absl::StrCat("host list, position ", offset + 1, ": ", hosts.status().message()));
}

std::string FoldHostList(absl::Span<const std::string> hosts) {
  std::string folded;
  size_t i = 0;
  while (i < hosts.size()) {
    const NumberedName first = Split(hosts[i]);
    // Ranges of the names that share prefix and suffix.
    std::string ranges;
    size_t members = 0;
    size_t j = i;
    while (j < hosts.size() && !first.digits.empty()) {
      const NumberedName low = Split(hosts[j]);
      if (low.digits.empty() || low.prefix != first.prefix || low.suffix != first.suffix) break;
      NumberedName high = low;
      size_t k = j + 1;
      for (; k < hosts.size(); ++k) {
        const NumberedName next = Split(hosts[k]);
        const bool follows = !next.digits.empty() && next.prefix == first.prefix && next.suffix == first.suffix &&
                             next.number == high.number + 1 && SameWidth(next, low.digits.size());
        if (!follows) break;
        high = next;
      }
      absl::StrAppend(&ranges, ranges.empty() ? "" : ",", low.digits);
      if (k - j > 1) absl::StrAppend(&ranges, "-", high.digits);
      members += k - j;
      j = k;
    }
    absl::StrAppend(&folded, folded.empty() ? "" : ",");
    if (members <= 1) {
      absl::StrAppend(&folded, hosts[i]);
      ++i;
    } else {
      absl::StrAppend(&folded, first.prefix, "[", ranges, "]", first.suffix);
      i = j;
    }
  }
  return folded;
}

std::string FoldHostSet(std::vector<std::string> hosts) {
  std::sort(hosts.begin(), hosts.end(), [](const std::string& a, const std::string& b) { return HostNameLess(a, b); });
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return FoldHostList(hosts);
}

bool HostNameLess(absl::string_view a, absl::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (absl::ascii_isdigit(a[i]) && absl::ascii_isdigit(b[j])) {
      const size_t a_start = i, b_start = j;
      while (i < a.size() && absl::ascii_isdigit(a[i])) ++i;
      while (j < b.size() && absl::ascii_isdigit(b[j])) ++j;
      absl::string_view x = a.substr(a_start, i - a_start), y = b.substr(b_start, j - b_start);
      const size_t x_width = x.size(), y_width = y.size();
      while (x.size() > 1 && x[0] == '0') x.remove_prefix(1);
      while (y.size() > 1 && y[0] == '0') y.remove_prefix(1);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      if (x_width != y_width) return x_width < y_width;
    } else {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

}  // namespace closeknit
