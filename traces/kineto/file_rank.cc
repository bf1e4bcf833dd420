#include <cctype>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "traces/kineto/build_rank.h"

namespace optimus::traces {
namespace {

constexpr std::size_t kMostDigits = 7;

std::optional<std::int32_t> Number(absl::string_view digits) {
  std::int32_t rank = 0;
  const bool fits = !digits.empty() && digits.size() <= kMostDigits;
  return fits && absl::SimpleAtoi(digits, &rank) ? std::make_optional(rank) : std::nullopt;
}

absl::string_view LeadingDigits(absl::string_view text) {
  std::size_t size = 0;
  while (size < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[size]))) ++size;
  return text.substr(0, size);
}

}  // namespace

std::optional<std::int32_t> RankOfFileName(absl::string_view path) {
  const std::string lower = absl::AsciiStrToLower(path.substr(path.rfind('/') + 1));
  const absl::string_view name = lower;
  constexpr absl::string_view kWord = "rank";
  for (std::size_t at = name.find(kWord); at != absl::string_view::npos;
       at = name.find(kWord, at + 1)) {
    absl::string_view rest = name.substr(at + kWord.size());
    if (!rest.empty() && (rest.front() == '-' || rest.front() == '_')) rest.remove_prefix(1);
    if (const auto rank = Number(LeadingDigits(rest)); rank.has_value()) return rank;
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '.');
  for (std::size_t i = 1; i + 1 < parts.size(); ++i) {
    if (LeadingDigits(parts[i]) != parts[i]) continue;
    if (const auto rank = Number(parts[i]); rank.has_value()) return rank;
  }
  return std::nullopt;
}

}  // namespace optimus::traces
