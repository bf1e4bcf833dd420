#pragma once
// What a report of a run says of its ranks, short enough to be read.

#include <string>
#include <vector>

namespace optimus::executor {

// What a rank is at.
struct RankText {
  int rank = 0;
  std::string host;
  std::string text;
};

// "rank 3 (host): TEXT", in order of rank. Ranks of one host whose texts are the same but for
// single ranks that they name have one line: "ranks 4, 6-8 (host): ... waits for ranks 0, 2-4".
std::vector<std::string> ReportLines(const std::vector<RankText>& texts);

// Operations may be slow instead of hung: what to do about that, and whether there is a likely
// cause, since `ranks` compute on the `cores` of one host (0: unknown).
std::string SlownessHint(int ranks, int cores);

}  // namespace optimus::executor
