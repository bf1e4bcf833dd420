#pragma once
// Ranks in a message: few enough to read.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace optimus::executor {

// "1, 4, 9"; of many the first eight say which they are: "0, 1, 2, 3, 4, 5, 6, 7 and 12 more".
std::string RankNumbers(const std::vector<std::int32_t>& ranks);

// Ascending ranks, three and more in a row as a range: "1, 4-9, 12"; of more pieces than `pieces`
// the first, with how many ranks the others are: "0, 2, 4, 6, 8, 10, 12, 14 and 9 more".
std::string RankRanges(const std::vector<std::int32_t>& ranks, std::size_t pieces = 8);

// The same with its noun: "rank 4", "ranks 1, 4-9".
std::string RanksText(const std::vector<std::int32_t>& ranks, std::size_t pieces = 8);

}  // namespace optimus::executor
