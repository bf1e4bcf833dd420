#include "executor/watch/report.h"

#include <cctype>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "executor/runtime/rank_numbers.h"

namespace optimus::executor {
namespace {

constexpr absl::string_view kRank = "rank ";

// A text cut at every single rank that it names: pieces[0], ranks[0], pieces[1], ...
struct Cut {
  std::vector<std::string> pieces = {""};
  std::vector<int> ranks;
};

bool IsLetterOrDigit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// The number at the begin of `text`, as far as it is a rank; 0 characters: none.
std::size_t NumberAt(absl::string_view text, int& number) {
  std::size_t digits = 0;
  while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits])) != 0) {
    ++digits;
  }
  return absl::SimpleAtoi(text.substr(0, digits), &number) ? digits : 0;
}

Cut CutAtRanks(absl::string_view text) {
  Cut cut;
  std::size_t at = 0;
  while (at < text.size()) {
    const bool word = at == 0 || !IsLetterOrDigit(text[at - 1]);
    int rank = 0;
    const std::size_t digits = word && text.substr(at, kRank.size()) == kRank
                                   ? NumberAt(text.substr(at + kRank.size()), rank)
                                   : 0;
    if (digits == 0) {
      cut.pieces.back().push_back(text[at++]);
      continue;
    }
    cut.ranks.push_back(rank);
    cut.pieces.emplace_back();
    at += kRank.size() + digits;
  }
  return cut;
}

struct Group {
  std::vector<int> members;             // ascending
  std::vector<std::set<int>> mentions;  // by place in the text
};

std::string Line(const std::string& host, const std::vector<std::string>& pieces,
                 const Group& group) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  constexpr std::size_t kPieces = 8;
  std::string line =
      absl::StrCat(RanksText(group.members, kAll), " (", host, "): ", pieces.front());
  for (std::size_t i = 0; i < group.mentions.size(); ++i) {
    const std::vector<int> ranks(group.mentions[i].begin(), group.mentions[i].end());
    absl::StrAppend(&line, RanksText(ranks, kPieces), pieces[i + 1]);
  }
  return line;
}

}  // namespace

std::vector<std::string> ReportLines(const std::vector<RankText>& texts) {
  using Key = std::pair<std::string, std::vector<std::string>>;  // host, pieces
  std::map<Key, Group> groups;
  std::vector<const Key*> order;  // of first ranks
  for (const RankText& text : texts) {
    Cut cut = CutAtRanks(text.text);
    const auto [found, added] = groups.try_emplace({text.host, std::move(cut.pieces)});
    Group& group = found->second;
    if (added) {
      order.push_back(&found->first);
      group.mentions.resize(cut.ranks.size());
    }
    group.members.push_back(text.rank);
    for (std::size_t i = 0; i < cut.ranks.size(); ++i) group.mentions[i].insert(cut.ranks[i]);
  }
  std::vector<std::string> lines;
  lines.reserve(order.size());
  for (const Key* key : order) lines.push_back(Line(key->first, key->second, groups.at(*key)));
  return lines;
}

std::string SlownessHint(int ranks, int cores) {
  return absl::StrCat("hint: raise --timeout if an operation can take that long",
                      cores > 0 && ranks > cores ? absl::StrCat(" (", ranks, " ranks share ", cores,
                                                                cores == 1 ? " core)" : " cores)")
                                                 : "");
}

}  // namespace optimus::executor
