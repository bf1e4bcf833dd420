#include "traces/perfetto_recording.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "traces/arrows.h"
#include "traces/overlap_tracks.h"
#include "traces/track_descriptors.h"
#include "traces/track_writer.h"

namespace optimus::traces {
namespace {

constexpr Picoseconds kExactBelow{1'000'000};  // 1 us: shorter slices carry their length as well
constexpr std::uint64_t kNanosecondsOfClock = 9'200'000'000'000'000;  // 106 days

std::uint64_t ToNanoseconds(Picoseconds t) {
  return static_cast<std::uint64_t>(t.value() / 1000 + (t.value() % 1000 >= 500 ? 1 : 0));
}

// Where the clock of each rank starts in the trace.
class Clocks {
 public:
  explicit Clocks(const Recording& recording) {
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    for (const RecordedRank& rank : recording.ranks) {
      first_ = std::min(first_, rank.clock_origin_ns);
      last = std::max(last, rank.clock_origin_ns);
    }
    common_ = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first_) <=
              kNanosecondsOfClock;
  }
  std::uint64_t operator()(const RecordedRank& rank, Picoseconds time) const {
    const std::uint64_t origin = common_ ? static_cast<std::uint64_t>(rank.clock_origin_ns) -
                                               static_cast<std::uint64_t>(first_)
                                         : 0;
    return origin + ToNanoseconds(time);
  }

 private:
  std::int64_t first_ = std::numeric_limits<std::int64_t>::max();
  bool common_ = true;
};

void Annotate(absl::string_view key, std::int64_t value, TrackWriter& track) {
  if (value >= 0) track.Annotate(key, static_cast<std::uint64_t>(value));
}

void AnnotateFlops(double flops, TrackWriter& track) {
  if (!(flops > 0)) return;
  if (flops == std::floor(flops) && flops < 0x1p53) {
    track.Annotate("flops", static_cast<std::uint64_t>(flops));
  } else {
    track.Annotate("flops", flops);
  }
}

class RecordingTrace {
 public:
  explicit RecordingTrace(const Recording& recording)
      : recording_(recording),
        clocks_(recording),
        arrows_(FindArrows(recording, clocks_, kMostArrows)) {}

  std::string Build() {
    DescribeRoot(trace_);
    for (std::size_t i = 0; i < recording_.ranks.size(); ++i) AddRank(i);
    return std::move(trace_);
  }

 private:
  void AddRank(std::size_t index);
  void AddLane(std::size_t index, std::size_t lane, const std::vector<std::uint32_t>& operations);
  void AddTrack(std::size_t index, const std::vector<std::uint32_t>& operations,
                const std::string& name);
  void BeginSlice(std::size_t index, std::uint32_t id, bool intern, TrackWriter& track);
  void EndSlice(std::size_t index, std::uint32_t id, TrackWriter& track);
  void AnnotateOperation(const RecordedRank& rank, const RecordedOp& op, TrackWriter& track) const;

  const Recording& recording_;
  const Clocks clocks_;
  const std::vector<std::vector<ArrowEnd>> arrows_;
  std::string trace_;
  // Of the next process or track (track_descriptors.h), and of the process at hand.
  std::int32_t next_id_ = 1;
  std::int32_t process_ = 0;
};

std::string ProcessName(const RecordedRank& rank) {
  const std::string others =
      rank.stands_for > 1 ? absl::StrCat(" (for ", rank.stands_for, " ranks)") : "";
  return absl::StrCat("rank ", rank.rank, others);
}

void RecordingTrace::AnnotateOperation(const RecordedRank& rank, const RecordedOp& op,
                                       TrackWriter& track) const {
  if (const Communication* communication = rank.CommunicationOf(op); communication != nullptr) {
    if (communication->group >= 0) {
      const CommunicatorGroup& group = recording_.groups[communication->group];
      track.AnnotateText("group", group.name);
      if (group.size > 0) Annotate("group_size", group.size, track);
    }
    Annotate("peer", communication->peer, track);
    Annotate("tag", communication->tag, track);
    Annotate("bytes", communication->bytes.value(), track);
  }
  if (op.work >= 0) {
    const Work& work = rank.works[op.work];
    AnnotateFlops(work.flops, track);
    if (work.bytes > Bytes(0)) Annotate("bytes", work.bytes.value(), track);
  }
  if (op.duration() < kExactBelow) Annotate("duration_ps", op.duration().value(), track);
}

void RecordingTrace::BeginSlice(std::size_t index, std::uint32_t id, bool intern,
                                TrackWriter& track) {
  const RecordedRank& rank = recording_.ranks[index];
  const RecordedOp& op = rank.ops[id];
  const Communication* communication = rank.CommunicationOf(op);
  track.Begin(clocks_(rank, op.start),
              communication == nullptr ? ToString(op.kind) : ToString(communication->kind));
  track.Name(recording_.names[op.name], intern);
  AnnotateOperation(rank, op, track);
  for (const ArrowEnd& end : ArrowsOf(arrows_[index], id)) {
    if (end.where == ArrowEnd::Where::kFrom) track.StartFlow(end.arrow);
    if (end.where == ArrowEnd::Where::kToBegin) track.EndFlow(end.arrow);
  }
  track.Commit();
}

void RecordingTrace::EndSlice(std::size_t index, std::uint32_t id, TrackWriter& track) {
  const RecordedRank& rank = recording_.ranks[index];
  std::vector<std::uint64_t> flows;
  for (const ArrowEnd& end : ArrowsOf(arrows_[index], id)) {
    if (end.where == ArrowEnd::Where::kToEnd) flows.push_back(end.arrow);
  }
  track.End(clocks_(rank, rank.ops[id].end), flows);
}

// Slices may lie within one another.
void RecordingTrace::AddTrack(std::size_t index, const std::vector<std::uint32_t>& operations,
                              const std::string& name) {
  const RecordedRank& rank = recording_.ranks[index];
  const std::uint32_t track_id = DescribeTrack(next_id_++, process_, name, trace_);
  TrackWriter track(track_id, track_id, trace_);
  absl::flat_hash_map<std::int32_t, int> uses;
  for (const std::uint32_t id : operations) ++uses[rank.ops[id].name];
  std::vector<std::uint32_t> open;
  const auto end_until = [&](Picoseconds time) {
    for (; !open.empty() && rank.ops[open.back()].end <= time; open.pop_back()) {
      EndSlice(index, open.back(), track);
    }
  };
  for (const std::uint32_t id : operations) {
    end_until(rank.ops[id].start);
    // A name that comes once is shorter in place than in the index.
    BeginSlice(index, id, uses[rank.ops[id].name] > 1, track);
    open.push_back(id);
  }
  end_until(Picoseconds(std::numeric_limits<std::int64_t>::max()));
}

void RecordingTrace::AddLane(std::size_t index, std::size_t lane,
                             const std::vector<std::uint32_t>& operations) {
  if (operations.empty()) return;
  const RecordedRank& rank = recording_.ranks[index];
  const Lane& of = rank.lanes[lane];
  const auto tracks = DealToTracks(rank, operations, of.kind == LaneKind::kHostThread);
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    AddTrack(index, tracks[i], i == 0 ? of.name : absl::StrCat(of.name, ", track ", i + 1));
  }
}

void RecordingTrace::AddRank(std::size_t index) {
  const RecordedRank& rank = recording_.ranks[index];
  process_ = next_id_;
  DescribeProcess(process_, static_cast<std::int32_t>(index), ProcessName(rank), trace_);
  std::vector<std::vector<std::uint32_t>> lanes(rank.lanes.size());
  for (std::uint32_t id = 0; id < rank.ops.size(); ++id) {
    if (rank.ops[id].timed()) lanes[static_cast<std::size_t>(rank.ops[id].lane)].push_back(id);
  }
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) AddLane(index, lane, lanes[lane]);
  next_id_ = std::max(next_id_, process_ + 1);  // a rank without tracks has an id too
}

}  // namespace

std::int64_t CountUntimed(const Recording& recording) {
  std::int64_t count = 0;
  for (const RecordedRank& rank : recording.ranks) {
    count += std::count_if(rank.ops.begin(), rank.ops.end(),
                           [](const RecordedOp& op) { return !op.timed(); });
  }
  return count;
}

absl::StatusOr<std::string> ToPerfetto(const Recording& recording) {
  std::int64_t operations = 0;
  for (const RecordedRank& rank : recording.ranks) operations += std::ssize(rank.ops);
  if (operations == 0) {
    return absl::FailedPreconditionError("the trace has no operations, so nothing can be drawn");
  }
  if (CountUntimed(recording) == operations) {
    return absl::FailedPreconditionError(absl::StrCat(
        "none of the trace's ", operations, " operations has a time, so nothing can be drawn; ",
        "hint: such a trace can be converted to Chakra, or replayed with a hardware profile"));
  }
  return RecordingTrace(recording).Build();
}

}  // namespace optimus::traces
