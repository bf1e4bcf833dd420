#include "traces/rank_times.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "traces/span_name.h"

namespace optimus::traces {
namespace {

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

absl::Status CheckStreams(const ir::Schedule& schedule, const RankTimes& times) {
  std::array<Picoseconds, ir::kStreamCount> ends{};
  for (std::size_t id = 0; id < times.starts.size(); ++id) {
    const ir::Operation& op = times.program->operations[id];
    Picoseconds& previous_end = ends[static_cast<std::size_t>(op.stream)];
    if (times.starts[id] < previous_end) {
      return absl::InvalidArgumentError(absl::StrCat(
          "timeline: rank ", times.rank, " operation ", id, " (", SpanName(schedule, op),
          ") starts at ", times.starts[id].value(),
          " ps, before its stream's previous operation ends at ", previous_end.value(), " ps"));
    }
    previous_end = times.ends[id];
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
  times.starts.reserve(spans.size());
  times.ends.reserve(spans.size());
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
  OPTIMUS_RETURN_IF_ERROR(CheckStreams(schedule, times));
  return times;
}

}  // namespace

absl::StatusOr<std::vector<RankTimes>> CollectTimes(const ir::Schedule& schedule,
                                                    const ir::Timeline& timeline) {
  const std::vector<ir::Span>& spans = timeline.spans;
  if (spans.empty()) {
    return absl::FailedPreconditionError(
        "timeline: it has no spans to draw; run the schedule with span recording on");
  }
  std::vector<RankTimes> ranks;
  for (std::size_t first = 0; first < spans.size();) {
    std::size_t last = first;
    while (last < spans.size() && spans[last].rank == spans[first].rank) ++last;
    OPTIMUS_ASSIGN_OR_RETURN(
        RankTimes times,
        CollectRank(schedule, absl::MakeConstSpan(spans).subspan(first, last - first)));
    if (!ranks.empty() && ranks.back().rank >= times.rank) {
      return absl::InvalidArgumentError(absl::StrCat("timeline: spans of rank ", times.rank,
                                                     " behind those of rank ", ranks.back().rank,
                                                     "; expected them in order of ranks"));
    }
    ranks.push_back(std::move(times));
    first = last;
  }
  return ranks;
}

}  // namespace optimus::traces
