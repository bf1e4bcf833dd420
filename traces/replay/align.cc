#include "traces/replay/align.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

namespace optimus::traces {
namespace {

bool EndsTogether(CommunicationKind kind) {
  switch (kind) {
    case CommunicationKind::kAllReduce:
    case CommunicationKind::kAllGather:
    case CommunicationKind::kReduceScatter:
    case CommunicationKind::kAllToAll:
    case CommunicationKind::kBarrier:
    case CommunicationKind::kSend:
    case CommunicationKind::kReceive:
    case CommunicationKind::kSendReceive:
      return true;
    case CommunicationKind::kUnknown:
    case CommunicationKind::kBroadcast:
    case CommunicationKind::kReduce:
    case CommunicationKind::kGather:
    case CommunicationKind::kScatter:
      return false;
  }
  return false;
}

std::int64_t Median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of pairs of ranks (indices, ascending): end on the second minus end on the first.
using Differences = std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int64_t>>;

Differences Collect(const ReplayGraph& graph, const std::vector<Match>& matches) {
  Differences differences;
  for (const Match& match : matches) {
    if (match.eager || !EndsTogether(graph.communication(match.members.front())->kind)) continue;
    const Task& first = graph.tasks[match.members.front()];
    for (std::size_t i = 1; i < match.members.size(); ++i) {
      const Task& other = graph.tasks[match.members[i]];
      const std::int64_t difference = (other.end - first.end).value();
      if (first.rank == other.rank) continue;
      const bool ascending = first.rank < other.rank;
      differences[std::minmax(first.rank, other.rank)].push_back(ascending ? difference
                                                                           : -difference);
    }
  }
  return differences;
}

class Aligner {
 public:
  Aligner(const ReplayGraph& graph, const std::vector<Match>& matches)
      : graph_(graph), differences_(Collect(graph, matches)) {
    for (const auto& [pair, unused] : differences_) {
      neighbours_[pair.first].push_back(pair.second);
      neighbours_[pair.second].push_back(pair.first);
    }
  }

  std::vector<ClockCorrection> Find() {
    const std::size_t ranks = graph_.recording.ranks.size();
    corrections_.resize(ranks);
    known_.resize(ranks, false);
    std::vector<ClockCorrection> result;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (known_[rank]) continue;
      known_[rank] = true;
      corrections_[rank].rank = graph_.recording.ranks[rank].rank;
      Spread(static_cast<std::int32_t>(rank));
    }
    // Rank 0 of the recording is the reference of its set; others without transfers say so.
    for (std::size_t rank = 1; rank < ranks; ++rank) result.push_back(corrections_[rank]);
    return result;
  }

 private:
  // Corrects all ranks that are connected with `reference`, nearest first.
  void Spread(std::int32_t reference) {
    std::vector<std::int32_t> reached = {reference};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const std::int32_t next : neighbours_[reached[i]]) {
        if (known_[next]) continue;
        known_[next] = true;
        Correct(reached[i], next);
        reached.push_back(next);
      }
    }
  }

  void Correct(std::int32_t from, std::int32_t to) {
    const std::vector<std::int64_t>& all = differences_[std::minmax(from, to)];
    const std::int64_t median = Median(all);
    std::vector<std::int64_t> distances;
    distances.reserve(all.size());
    for (const std::int64_t difference : all) distances.push_back(std::abs(difference - median));
    ClockCorrection& correction = corrections_[to];
    correction.rank = graph_.recording.ranks[to].rank;
    correction.correction =
        corrections_[from].correction - Picoseconds(from < to ? median : -median);
    correction.spread = Picoseconds(Median(std::move(distances)));
    correction.transfers = static_cast<std::int64_t>(all.size());
  }

  const ReplayGraph& graph_;
  Differences differences_;
  std::map<std::int32_t, std::vector<std::int32_t>> neighbours_;
  std::vector<ClockCorrection> corrections_;
  std::vector<bool> known_;
};

}  // namespace

std::vector<ClockCorrection> FindCorrections(const ReplayGraph& graph,
                                             const std::vector<Match>& matches) {
  if (graph.recording.one_clock || !graph.timed || graph.recording.ranks.size() < 2) return {};
  return Aligner(graph, matches).Find();
}

}  // namespace optimus::traces
