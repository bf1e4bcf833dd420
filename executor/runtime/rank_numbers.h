#pragma once
// Ranks in a message: few enough to read.

#include <cstdint>
#include <string>
#include <vector>

namespace optimus::executor {

// "1, 4, 9"; of many the first eight say which they are: "0, 1, 2, 3, 4, 5, 6, 7 and 12 more".
std::string RankNumbers(const std::vector<std::int32_t>& ranks);

}  // namespace optimus::executor
