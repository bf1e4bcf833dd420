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

}  // namespace optimus::executor
