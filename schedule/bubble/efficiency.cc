#include "schedule/bubble/efficiency.h"

#include <algorithm>
#include <array>
#include <limits>

#include "schedule/bubble/slots.h"

namespace optimus::bubble {
namespace {

// Busy times of the two resources of a lane, in one region of the step.
using Busy = std::array<std::vector<Interval>, 2>;

void Sort(std::vector<Interval>& list) {
  const auto earlier = [](const Interval& a, const Interval& b) { return a.start < b.start; };
  if (!std::is_sorted(list.begin(), list.end(), earlier)) {
    std::stable_sort(list.begin(), list.end(), earlier);
  }
}

// Length of the union. Both lists in order of start.
Picoseconds UnionLength(const Busy& busy) {
  Picoseconds length;
  Picoseconds reached(std::numeric_limits<std::int64_t>::min());
  std::size_t a = 0;
  std::size_t b = 0;
  while (a < busy[0].size() || b < busy[1].size()) {
    const bool first =
        b == busy[1].size() || (a < busy[0].size() && busy[0][a].start <= busy[1][b].start);
    const Interval& next = first ? busy[0][a++] : busy[1][b++];
    const Picoseconds start = std::max(next.start, reached);
    if (next.end <= start) continue;
    length += next.end - start;
    reached = next.end;
  }
  return length;
}

struct LaneBusy {
  Busy before, after;  // the LLM's first start, and its last end on this lane
  Picoseconds alone;   // TimeAlone of all that runs here
};

// Ops that follow each other without a gap are one interval: there are many of them.
void Append(std::vector<Interval>& list, Interval next) {
  if (!list.empty() && list.back().start <= next.start && next.start <= list.back().end) {
    list.back().end = std::max(list.back().end, next.end);
  } else {
    list.push_back(next);
  }
}

// Adds one micro-batch on one stage to a lane. Times of the LLM alone.
void Add(const StageWork& work, const PlacedStage& placed, Picoseconds shift, const LlmStage& stage,
         LaneBusy& lane) {
  if (placed.interior) return;
  for (std::size_t i = 0; i < work.ops.size(); ++i) {
    const Picoseconds start = placed.starts[i] - shift;
    const Picoseconds end = start + work.ops[i].duration;
    const auto resource = static_cast<std::size_t>(work.ops[i].resource);
    if (start < stage.first_start) {
      Append(lane.before[resource], {start, std::min(end, stage.first_start)});
    }
    if (end > stage.last_end) {
      Append(lane.after[resource], {std::max(start, stage.last_end), end});
    }
  }
}

// Encoder time that lies outside bubbles of this lane.
Picoseconds Outside(LaneBusy& lane, const LlmStage& stage, Picoseconds reduced) {
  for (Busy* busy : {&lane.before, &lane.after}) {
    for (auto& list : *busy) Sort(list);
  }
  const Picoseconds before = UnionLength(lane.before) - stage.first_start;
  const Picoseconds after = UnionLength(lane.after) - (reduced - stage.last_end);
  return std::max(before, Picoseconds(0)) + std::max(after, Picoseconds(0));
}

void AddEncoder(const Problem& problem, const EncoderWork& encoder, const PlacedEncoder& placed,
                Picoseconds shift, std::vector<LaneBusy>& lanes) {
  const auto forward = TimeAlone(encoder.forward);
  const auto backward = TimeAlone(encoder.backward);
  for (std::size_t j = 0; j < placed.pipelines.size(); ++j) {
    for (std::size_t p = 0; p < encoder.forward.size(); ++p) {
      const PipelinePlace place =
          PlaceOf(problem, encoder, static_cast<std::int32_t>(j), static_cast<std::int32_t>(p));
      const LlmStage& stage = problem.llm.stages[static_cast<std::size_t>(place.stage)];
      for (std::int32_t l = 0; l < place.lane_count; ++l) {
        LaneBusy& lane =
            lanes[static_cast<std::size_t>(LaneIndex(problem, place.stage, place.first_lane + l))];
        for (const PlacedMicroBatch& unit : placed.pipelines[j].micro_batches) {
          Add(encoder.forward[p], unit.forward[p], shift, stage, lane);
          Add(encoder.backward[p], unit.backward[p], shift, stage, lane);
          lane.alone += forward[p] + backward[p];
        }
      }
    }
  }
}

}  // namespace

std::vector<Picoseconds> TimeAlone(const std::vector<StageWork>& stages) {
  std::vector<Picoseconds> times;
  for (const StageWork& work : stages) {
    std::vector<Picoseconds> ends(work.ops.size());
    std::array<Picoseconds, 2> free;
    Busy busy;
    for (std::size_t i = 0; i < work.ops.size(); ++i) {
      const WorkOp& op = work.ops[i];
      const auto resource = static_cast<std::size_t>(op.resource);
      Picoseconds start = free[resource];
      for (std::uint32_t d = 0; d < op.dependency_count; ++d) {
        start = std::max(start, ends[work.dependencies[op.first_dependency + d]]);
      }
      free[resource] = ends[i] = start + op.duration;
      busy[resource].push_back({start, ends[i]});
    }
    times.push_back(UnionLength(busy));
  }
  return times;
}

Efficiency EfficiencyOf(const Problem& problem, const Result& result) {
  std::vector<LaneBusy> lanes(problem.llm.stages.size() * static_cast<std::size_t>(problem.lanes));
  for (std::size_t e = 0; e < problem.encoders.size(); ++e) {
    AddEncoder(problem, problem.encoders[e], result.encoders[e], result.delta_f, lanes);
  }
  const Picoseconds reduced = problem.llm.step - problem.llm.after_reduction;
  double all = 0;
  double outside = 0;
  Picoseconds busiest;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const LlmStage& stage = problem.llm.stages[i / static_cast<std::size_t>(problem.lanes)];
    all += ToSeconds(lanes[i].alone);
    outside += ToSeconds(Outside(lanes[i], stage, reduced));
    busiest = std::max(busiest, lanes[i].alone);
  }
  if (busiest == Picoseconds(0)) return {1, 1};
  const Picoseconds longer = result.latency - problem.llm.step;
  return {1 - std::min(1.0, outside / all), 1 - ToSeconds(longer) / ToSeconds(busiest)};
}

}  // namespace optimus::bubble
