#include "traces/perfetto.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "traces/bubble_intervals.h"
#include "traces/span_name.h"
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

// The times of all operations of one rank.
struct RankTimes {
  std::int32_t rank = 0;
  const ir::Program* program = nullptr;
  std::vector<Picoseconds> starts, ends;
};

// Index of the program that `rank` runs; negative or past the end for a rank that is not there.
std::int64_t ProgramOf(const ir::Schedule& schedule, std::int32_t rank) {
  if (rank < 0) return -1;
  const std::int64_t stage = rank / (std::int64_t{schedule.world.dp} * schedule.world.tp);
  const std::int32_t lane_width = schedule.world.tp / schedule.lanes;
  return stage * schedule.lanes + rank % schedule.world.tp / lane_width;
}

absl::Status CheckSpan(const RankTimes& rank, std::size_t position, const ir::Span& span) {
  const std::size_t count = rank.program->operations.size();
  if (position >= count || span.operation != position) {
    return absl::InvalidArgumentError(
        absl::StrCat("timeline: rank ", rank.rank, " (stage ", rank.program->stage, ") has a span ",
                     "of operation ", span.operation, " where one of operation ", position, " of ",
                     count, " was due; a trace needs each operation once, in order"));
  }
  if (span.start < Picoseconds(0) || span.end < span.start) {
    return absl::InvalidArgumentError(absl::StrCat(
        "timeline: rank ", rank.rank, " operation ", span.operation, ": span from ",
        span.start.value(), " ps to ", span.end.value(), " ps; expected 0 <= start <= end"));
  }
  return absl::OkStatus();
}

absl::StatusOr<RankTimes> CollectRank(const ir::Schedule& schedule,
                                      absl::Span<const ir::Span> spans) {
  RankTimes times;
  times.rank = spans.front().rank;
  const std::int64_t program = ProgramOf(schedule, times.rank);
  if (program < 0 || program >= std::ssize(schedule.programs)) {
    return absl::InvalidArgumentError(absl::StrCat("timeline: a span of rank ", times.rank,
                                                   ", but the schedule has ranks 0 to ",
                                                   schedule.world.gpus() - 1));
  }
  times.program = &schedule.programs[static_cast<std::size_t>(program)];
  for (std::size_t i = 0; i < spans.size(); ++i) {
    OPTIMUS_RETURN_IF_ERROR(CheckSpan(times, i, spans[i]));
    times.starts.push_back(spans[i].start);
    times.ends.push_back(spans[i].end);
  }
  if (spans.size() != times.program->operations.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "timeline: rank ", times.rank, " (stage ", times.program->stage, ") has spans of ",
        spans.size(), " operations, but its program has ", times.program->operations.size()));
  }
  return times;
}

class TraceBuilder {
 public:
  TraceBuilder(const ir::Schedule& schedule, const ir::Timeline& timeline)
      : schedule_(schedule), timeline_(timeline) {}

  absl::StatusOr<std::string> Build();

 private:
  void DescribeRoot();
  absl::Status AddRank(const RankTimes& times, int position);
  std::string ProcessName(const RankTimes& times) const;
  void DescribeProcess(const RankTimes& times, int position);
  // Returns the sequence and track id of a new thread track.
  std::uint32_t DescribeTrack(int position, int order, const std::string& name);
  absl::Status AddStream(const RankTimes& times, int position,
                         const std::vector<std::uint32_t>& operations);
  void AddBubbles(const RankTimes& times, int position);
  void AnnotateOperation(const ir::Operation& op, TrackWriter& track) const;

  const ir::Schedule& schedule_;
  const ir::Timeline& timeline_;
  std::string trace_;
};

// Processes and threads have ids from 1 in the order in which they are to be drawn; a process's
// first thread has the process's id (its main thread, which viewers put first).
int ProcessId(int position) { return 1 + position * kTracksPerRank; }

// A track's uuid: apart for processes and threads, never 0.
std::uint64_t ProcessUuid(int position) {
  return (std::uint64_t{1} << 32) + static_cast<std::uint64_t>(ProcessId(position));
}

void TraceBuilder::DescribeRoot() {
  perfetto::TracePacket packet;
  perfetto::TrackDescriptor* root = packet.mutable_track_descriptor();
  root->set_uuid(0);
  root->set_process_ordering(perfetto::TrackDescriptor::PROCESS_ORDERING_EXPLICIT);
  root->set_thread_ordering(perfetto::TrackDescriptor::THREAD_ORDERING_EXPLICIT);
  AppendPacket(packet, trace_);
}

std::string TraceBuilder::ProcessName(const RankTimes& times) const {
  std::string name = absl::StrCat("stage ", times.program->stage);
  if (schedule_.lanes > 1) absl::StrAppend(&name, " lane ", times.program->lane);
  return absl::StrCat(name, " (rank ", times.rank, ")");
}

void TraceBuilder::DescribeProcess(const RankTimes& times, int position) {
  perfetto::TracePacket packet;
  packet.set_timestamp(0);
  perfetto::TrackDescriptor* track = packet.mutable_track_descriptor();
  track->set_uuid(ProcessUuid(position));
  track->set_sibling_order_rank(position);
  track->mutable_process()->set_pid(ProcessId(position));
  track->mutable_process()->set_legacy_sort_index(position);
  track->mutable_process()->set_process_name(ProcessName(times));
  AppendPacket(packet, trace_);
}

std::uint32_t TraceBuilder::DescribeTrack(int position, int order, const std::string& name) {
  const int id = ProcessId(position) + order;
  perfetto::TracePacket packet;
  packet.set_timestamp(0);
  perfetto::TrackDescriptor* track = packet.mutable_track_descriptor();
  track->set_uuid(static_cast<std::uint64_t>(id));
  track->set_parent_uuid(ProcessUuid(position));
  track->set_name(name);
  track->set_sibling_order_rank(order);
  track->mutable_thread()->set_pid(ProcessId(position));
  track->mutable_thread()->set_tid(id);
  track->mutable_thread()->set_legacy_sort_index(order);
  track->mutable_thread()->set_thread_name(name);
  AppendPacket(packet, trace_);
  return static_cast<std::uint32_t>(id);
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

absl::Status TraceBuilder::AddStream(const RankTimes& times, int position,
                                     const std::vector<std::uint32_t>& operations) {
  if (operations.empty()) return absl::OkStatus();
  const ir::Stream stream = times.program->operations[operations.front()].stream;
  const std::uint32_t id = DescribeTrack(position, TrackOrder(stream), TrackName(stream));
  std::vector<std::string> names;
  absl::flat_hash_map<std::string, int> uses;
  for (const std::uint32_t op : operations) {
    names.push_back(SpanName(schedule_, times.program->operations[op]));
    ++uses[names.back()];
  }
  TrackWriter track(id, id, trace_);
  Picoseconds previous_end;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const std::uint32_t op = operations[i];
    if (times.starts[op] < previous_end) {
      return absl::InvalidArgumentError(absl::StrCat(
          "timeline: rank ", times.rank, " operation ", op, " (", names[i], ") starts at ",
          times.starts[op].value(), " ps, before its stream's previous operation ends at ",
          previous_end.value(), " ps"));
    }
    previous_end = times.ends[op];
    track.Begin(ToNanoseconds(times.starts[op]),
                SpanCategory(schedule_, times.program->operations[op]));
    // A name that comes once is shorter in place than in the index.
    track.Name(names[i], uses[names[i]] > 1);
    AnnotateOperation(times.program->operations[op], track);
    AnnotateExactDuration(times.ends[op] - times.starts[op], track);
    track.Commit();
    track.End(ToNanoseconds(times.ends[op]));
  }
  return absl::OkStatus();
}

void TraceBuilder::AddBubbles(const RankTimes& times, int position) {
  const std::vector<BubbleInterval> bubbles =
      BubbleIntervals(schedule_, *times.program, times.starts, times.ends, timeline_.step);
  if (bubbles.empty()) return;
  const std::uint32_t id = DescribeTrack(position, kBubbleOrder, "bubbles");
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

absl::Status TraceBuilder::AddRank(const RankTimes& times, int position) {
  DescribeProcess(times, position);
  std::vector<std::vector<std::uint32_t>> streams(ir::kStreamCount);
  for (std::uint32_t id = 0; id < times.program->operations.size(); ++id) {
    streams[static_cast<std::size_t>(times.program->operations[id].stream)].push_back(id);
  }
  for (const auto& operations : streams) {
    OPTIMUS_RETURN_IF_ERROR(AddStream(times, position, operations));
  }
  AddBubbles(times, position);
  return absl::OkStatus();
}

absl::StatusOr<std::string> TraceBuilder::Build() {
  const std::vector<ir::Span>& spans = timeline_.spans;
  if (spans.empty()) {
    return absl::FailedPreconditionError(
        "timeline: it has no spans to draw; run the schedule with span recording on");
  }
  trace_.reserve(spans.size() * 110);
  DescribeRoot();
  int position = 0;
  for (std::size_t first = 0; first < spans.size(); ++position) {
    std::size_t last = first;
    while (last < spans.size() && spans[last].rank == spans[first].rank) ++last;
    OPTIMUS_ASSIGN_OR_RETURN(
        const RankTimes times,
        CollectRank(schedule_, absl::MakeConstSpan(spans).subspan(first, last - first)));
    OPTIMUS_RETURN_IF_ERROR(AddRank(times, position));
    first = last;
  }
  return std::move(trace_);
}

}  // namespace

absl::StatusOr<std::string> ToPerfetto(const ir::Schedule& schedule, const ir::Timeline& timeline) {
  return TraceBuilder(schedule, timeline).Build();
}

}  // namespace optimus::traces
