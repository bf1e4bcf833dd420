#include "executor/runtime/rank_numbers.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace optimus::executor {

std::string RankNumbers(const std::vector<std::int32_t>& ranks) {
  constexpr std::size_t kListed = 8;
  if (ranks.size() <= kListed) return absl::StrJoin(ranks, ", ");
  const std::vector<std::int32_t> first(ranks.begin(), ranks.begin() + kListed);
  return absl::StrCat(absl::StrJoin(first, ", "), " and ", ranks.size() - kListed, " more");
}

std::string RankRanges(const std::vector<std::int32_t>& ranks, std::size_t pieces) {
  std::vector<std::string> listed;
  std::size_t at = 0;
  while (at < ranks.size() && listed.size() < pieces) {
    std::size_t end = at + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - at < 3) {
      listed.push_back(absl::StrCat(ranks[at++]));
      continue;
    }
    listed.push_back(absl::StrCat(ranks[at], "-", ranks[end - 1]));
    at = end;
  }
  return absl::StrCat(absl::StrJoin(listed, ", "),
                      at < ranks.size() ? absl::StrCat(" and ", ranks.size() - at, " more") : "");
}

std::string RanksText(const std::vector<std::int32_t>& ranks, std::size_t pieces) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", RankRanges(ranks, pieces));
}

}  // namespace optimus::executor
