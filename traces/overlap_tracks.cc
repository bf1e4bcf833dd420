#include "traces/overlap_tracks.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

namespace optimus::traces {
namespace {

// Of slices that begin together, those without length come first, then the longest: it may hold the
// others.
std::vector<std::uint32_t> InOrderOfBegin(const RecordedRank& rank,
                                          absl::Span<const std::uint32_t> operations) {
  // One by one: GCC 12 warns falsely of a vector that is made of a span and sorted.
  std::vector<std::uint32_t> sorted;
  sorted.reserve(operations.size());
  for (const std::uint32_t id : operations) sorted.push_back(id);
  const auto key = [&](std::uint32_t id) {
    const RecordedOp& op = rank.ops[id];
    return std::make_tuple(op.start, op.duration() > Picoseconds(0), -op.end, id);
  };
  std::sort(sorted.begin(), sorted.end(),
            [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  return sorted;
}

// The tracks behind the first.
class ExtraTracks {
 public:
  explicit ExtraTracks(std::vector<std::vector<std::uint32_t>>& tracks) : tracks_(tracks) {}

  // On the track that is free for longest, or on a new one.
  void Add(std::uint32_t id, const RecordedOp& op) {
    std::size_t track = tracks_.size();
    if (!ends_.empty() && ends_.top().first <= op.start) {
      track = ends_.top().second;
      ends_.pop();
    } else {
      tracks_.emplace_back();
    }
    tracks_[track].push_back(id);
    ends_.emplace(op.end, track);
  }

 private:
  using End = std::pair<Picoseconds, std::size_t>;
  std::vector<std::vector<std::uint32_t>>& tracks_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

}  // namespace

std::vector<std::vector<std::uint32_t>> DealToTracks(const RecordedRank& rank,
                                                     absl::Span<const std::uint32_t> operations,
                                                     bool nest) {
  std::vector<std::vector<std::uint32_t>> tracks;
  tracks.emplace_back();
  ExtraTracks extra(tracks);
  std::vector<Picoseconds> open;  // ends of the first track's slices, outermost first
  for (const std::uint32_t id : InOrderOfBegin(rank, operations)) {
    const RecordedOp& op = rank.ops[id];
    while (!open.empty() && open.back() <= op.start) open.pop_back();
    if (open.empty() || (nest && op.end <= open.back())) {
      open.push_back(op.end);
      tracks.front().push_back(id);
    } else {
      extra.Add(id, op);
    }
  }
  return tracks;
}

}  // namespace optimus::traces
