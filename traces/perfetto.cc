#include "traces/perfetto.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "traces/bubble_intervals.h"
#include "traces/rank_times.h"
#include "traces/span_name.h"
#include "traces/track_descriptors.h"
#include "traces/track_writer.h"

namespace optimus::traces {
namespace {

constexpr Picoseconds kExactBelow{1'000'000};  // 1 us
constexpr int kBubbleOrder = 1;                // right under compute
// Every stream, and the bubbles.
constexpr int kTracksPerRank = ir::kStreamCount + 1;

std::uint64_t ToNanoseconds(Picoseconds t) {
  return static_cast<std::uint64_t>((t.value() + 500) / 1000);
}

class TraceBuilder {
 public:
  TraceBuilder(const ir::Schedule& schedule, const ir::Timeline& timeline)
      : schedule_(schedule), timeline_(timeline) {}

  absl::StatusOr<std::string> Build();

 private:
  void AddRank(const RankTimes& times, int position);
  std::string ProcessName(const RankTimes& times) const;
  void AddStream(const RankTimes& times, int position,
                 const std::vector<std::uint32_t>& operations);
  void AddBubbles(const RankTimes& times, int position);
  void AnnotateOperation(const ir::Operation& op, TrackWriter& track) const;

  const ir::Schedule& schedule_;
  const ir::Timeline& timeline_;
  std::string trace_;
};

// Ids of a rank's process and tracks (track_descriptors.h).
int ProcessId(int position) { return 1 + position * kTracksPerRank; }
int TrackId(int position, int order) { return ProcessId(position) + order; }

std::string TraceBuilder::ProcessName(const RankTimes& times) const {
  std::string name = absl::StrCat("stage ", times.program->stage);
  if (schedule_.lanes > 1) absl::StrAppend(&name, " lane ", times.program->lane);
  return absl::StrCat(name, " (rank ", times.rank, ")");
}

void AnnotateAmount(absl::string_view key, double amount, TrackWriter& track) {
  if (amount <= 0) return;
  if (amount == std::floor(amount) && amount < 0x1p53) {
    track.Annotate(key, static_cast<std::uint64_t>(amount));
  } else {
    track.Annotate(key, amount);
  }
}

void AnnotateIndex(absl::string_view key, std::int64_t index, TrackWriter& track) {
  if (index >= 0) track.Annotate(key, static_cast<std::uint64_t>(index));
}

void TraceBuilder::AnnotateOperation(const ir::Operation& op, TrackWriter& track) const {
  const ir::Tag& tag = op.tag;
  if (tag.module >= 0) track.AnnotateText("module", schedule_.modules[tag.module].name);
  track.AnnotateText("phase", ToString(tag.phase));
  AnnotateIndex("layer", tag.layer, track);
  AnnotateIndex("chunk", tag.chunk, track);
  AnnotateIndex("micro_batch", tag.micro_batch, track);
  AnnotateIndex("slice", tag.slice, track);
  AnnotateIndex("peer_stage", op.peer_stage, track);
  AnnotateIndex("peer_lane", op.peer_lane, track);
  double flops = 0;
  Bytes bytes;
  if (op.kind == ir::OperationKind::kKernel) {
    flops = schedule_.kernels[op.work].flops.value();
    // What bounds the kernel: one amount keeps the file small.
    if (flops <= 0) bytes = schedule_.kernels[op.work].bytes;
  } else if (op.kind == ir::OperationKind::kCollective) {
    bytes = schedule_.collectives[op.work].work.bytes;
  } else {
    bytes = schedule_.transfers[op.work].bytes;
  }
  AnnotateAmount("flops", flops, track);
  AnnotateAmount("bytes", static_cast<double>(bytes.value()), track);
}

void AnnotateExactDuration(Picoseconds duration, TrackWriter& track) {
  if (duration < kExactBelow) {
    track.Annotate("duration_ps", static_cast<std::uint64_t>(duration.value()));
  }
}

void TraceBuilder::AddStream(const RankTimes& times, int position,
                             const std::vector<std::uint32_t>& operations) {
  if (operations.empty()) return;
  const ir::Stream stream = times.program->operations[operations.front()].stream;
  const std::uint32_t id = DescribeTrack(TrackId(position, TrackOrder(stream)), ProcessId(position),
                                         TrackName(stream), trace_);
  std::vector<std::string> names;
  absl::flat_hash_map<std::string, int> uses;
  for (const std::uint32_t op : operations) {
    names.push_back(SpanName(schedule_, times.program->operations[op]));
    ++uses[names.back()];
  }
  TrackWriter track(id, id, trace_);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const std::uint32_t op = operations[i];
    track.Begin(ToNanoseconds(times.starts[op]),
                SpanCategory(schedule_, times.program->operations[op]));
    // A name that comes once is shorter in place than in the index.
    track.Name(names[i], uses[names[i]] > 1);
    AnnotateOperation(times.program->operations[op], track);
    AnnotateExactDuration(times.ends[op] - times.starts[op], track);
    track.Commit();
    track.End(ToNanoseconds(times.ends[op]));
  }
}

void TraceBuilder::AddBubbles(const RankTimes& times, int position) {
  const std::vector<BubbleInterval> bubbles =
      BubbleIntervals(schedule_, *times.program, times.starts, times.ends, timeline_.step);
  if (bubbles.empty()) return;
  const std::uint32_t id =
      DescribeTrack(TrackId(position, kBubbleOrder), ProcessId(position), "bubbles", trace_);
  TrackWriter track(id, id, trace_);
  for (const BubbleInterval& bubble : bubbles) {
    track.Begin(ToNanoseconds(bubble.start), "bubble");
    track.Name(ToString(bubble.cause), true);
    if (bubble.awaited >= 0) {
      track.AnnotateText("waits_for",
                         OperationName(schedule_, times.program->operations[bubble.awaited]));
    }
    AnnotateExactDuration(bubble.end - bubble.start, track);
    track.Commit();
    track.End(ToNanoseconds(bubble.end));
  }
}

void TraceBuilder::AddRank(const RankTimes& times, int position) {
  DescribeProcess(ProcessId(position), position, ProcessName(times), trace_);
  std::vector<std::vector<std::uint32_t>> streams(ir::kStreamCount);
  for (std::uint32_t id = 0; id < times.program->operations.size(); ++id) {
    streams[static_cast<std::size_t>(times.program->operations[id].stream)].push_back(id);
  }
  for (const auto& operations : streams) AddStream(times, position, operations);
  AddBubbles(times, position);
}

absl::StatusOr<std::string> TraceBuilder::Build() {
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<RankTimes> ranks, CollectTimes(schedule_, timeline_));
  trace_.reserve(timeline_.spans.size() * 110);
  DescribeRoot(trace_);
  int position = 0;
  for (const RankTimes& times : ranks) AddRank(times, position++);
  return std::move(trace_);
}

}  // namespace

absl::StatusOr<std::string> ToPerfetto(const ir::Schedule& schedule, const ir::Timeline& timeline) {
  return TraceBuilder(schedule, timeline).Build();
}

}  // namespace optimus::traces
