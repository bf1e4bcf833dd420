#include "schedule/bubble/list_encoder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "schedule/bubble/sync.h"

namespace optimus::bubble {
namespace {

// Where on one resource the next op of a sequence can go.
struct Cursor {
  const Interval* slot = nullptr;
  Ps free = -kForever;

  // At or after `from`, whole into a slot.
  Ps Place(Ps from, Ps duration) {
    Ps start = std::max({from, free, slot->start.value()});
    while (start + duration > slot->end.value()) {
      ++slot;
      start = std::max(start, slot->start.value());
    }
    free = start + duration;
    return start;
  }
};

// Tried in this order by each pipeline that decides the length of the step.
constexpr ListVariant kVariants[] = {
    {OpOrder::kChainsOuter, OpOrder::kLayersOuter, true, true},
    {OpOrder::kChainsOuter, OpOrder::kPairsOuter, true, false},
    {OpOrder::kChainsOuter, OpOrder::kLayersOuter, true, false},
    {OpOrder::kChainsOuter, OpOrder::kChainsOuter, true, true},
};

void Latest(const std::vector<std::vector<Picoseconds>>& other,
            std::vector<std::vector<Picoseconds>>& times) {
  for (std::size_t p = 0; p < times.size(); ++p) {
    for (std::size_t b = 0; b < times[p].size(); ++b) {
      times[p][b] = std::max(times[p][b], other[p][b]);
    }
  }
}

template <class PerOp>
void ForEachOp(const std::vector<StageWork>& works, const PerOp& per_op) {
  for (std::size_t p = 0; p < works.size(); ++p) {
    for (const WorkOp& op : works[p].ops) per_op(p, op);
  }
}

std::int32_t BucketAt(const std::vector<std::vector<EncoderSync::Bucket>>& buckets,
                      std::size_t stage, std::int16_t layer) {
  return stage < buckets.size() ? BucketOf(buckets[stage], layer) : -1;
}

}  // namespace

ListEncoder::ListEncoder(const Problem& problem, const EncoderWork& work,
                         const std::vector<std::vector<Interval>>& gathers)
    : problem_(problem),
      work_(work),
      forward_graph_(MakeGraph(work, Direction::kForward, true)),
      backward_graph_(MakeGraph(work, Direction::kBackward, false)),
      owned_(static_cast<std::size_t>(PipelineCount(problem, work))) {
  ForEachOp(work.forward, [&](std::size_t p, const WorkOp& op) {
    const std::int32_t bucket = BucketAt(work.sync.gathers, p, op.layer);
    gathered_.push_back(bucket < 0 ? 0 : gathers[p][static_cast<std::size_t>(bucket)].end.value());
  });
  ForEachOp(work.backward, [&](std::size_t p, const WorkOp& op) {
    reduction_.push_back(BucketAt(work.sync.reductions, p, op.layer));
  });
  if (!gathered_.empty()) first_gathered_ = *std::min_element(gathered_.begin(), gathered_.end());
}

std::vector<ListEncoder::View> ListEncoder::ViewsOf(const Lanes& lanes, Direction direction,
                                                    bool mirrored) const {
  const WorkGraph& graph = GraphOf(direction);
  const std::int32_t subgroups = problem_.tensor_parallel / work_.plan.tensor_parallel;
  std::vector<View> views(owned_.size());
  for (std::size_t j = 0; j < views.size(); ++j) {
    const auto pipeline = static_cast<std::int32_t>(j);
    for (std::int32_t p = 0; p < graph.stages; ++p) {
      LaneSlots slots = SlotsOf(lanes, problem_, PlaceOf(problem_, work_, pipeline, p));
      if (mirrored) slots = {Mirror(slots.compute), Mirror(slots.link)};
      views[j].slots.push_back(std::move(slots));
    }
    for (const LaneSlots& slots : views[j].slots) {
      views[j].view.slots.push_back(&slots.compute);
      views[j].view.slots.push_back(&slots.link);
    }
    for (const WorkGraph::Hop hop : graph.hops) {
      views[j].view.hops.push_back(HopTime(work_, direction, hop, pipeline / subgroups));
    }
  }
  return views;
}

// In the time of the engine: forward is mirrored. By position in work_.micro_batches.
std::vector<Ps> ListEncoder::ReleasesOf(std::size_t pipeline, Direction direction) const {
  const bool forward = direction == Direction::kForward;
  const std::int32_t subgroups = problem_.tensor_parallel / work_.plan.tensor_parallel;
  const Ps transfer = (forward ? work_.to_llm : work_.from_llm)[pipeline].value() +
                      HopTime(work_, direction, GraphOf(direction).entry,
                              static_cast<std::int32_t>(pipeline) / subgroups);
  std::vector<Ps> releases;
  for (const std::int32_t i : work_.micro_batches) {
    const auto at = static_cast<std::size_t>(i);
    const Ps time =
        forward ? -problem_.llm.forward_needed[at].value() : problem_.llm.backward_made[at].value();
    releases.push_back(time + transfer);
  }
  return releases;
}

Ps ListEncoder::FluidScale() const {
  constexpr Ps kFits = kForever / 64;
  Ps most = problem_.llm.step.value();
  for (const WorkGraph* graph : {&forward_graph_, &backward_graph_}) {
    most += graph->length;
    for (const Ps compute : graph->stage_compute) {
      most += compute * static_cast<Ps>(work_.micro_batches.size());
    }
  }
  return most < kFits ? kFluidScale : 1;
}

std::vector<FluidPipeline> ListEncoder::FluidOf(const std::vector<View>& views,
                                                Direction direction) const {
  std::vector<FluidPipeline> fluid;
  for (std::size_t j = 0; j < views.size(); ++j) {
    std::vector<const Slots*> compute;
    for (const LaneSlots& slots : views[j].slots) compute.push_back(&slots.compute);
    fluid.emplace_back(GraphOf(direction), compute, ReleasesOf(j, direction), FluidScale());
  }
  return fluid;
}

AssignLimits ListEncoder::LimitsOf(const planner::Split& split, std::int32_t most, Ps least_shift,
                                   const std::vector<Picoseconds>& card_free) const {
  const Ps scale = FluidScale();
  AssignLimits limits;
  limits.counts = split;
  limits.most = most;
  limits.least_forward = scale * (least_shift - first_gathered_);
  for (std::size_t d = 0; d < card_free.size(); ++d) {
    Ps reduced = card_free[d].value();
    const std::size_t stage = d % static_cast<std::size_t>(work_.plan.pipeline_parallel);
    if (stage < work_.sync.reductions.size()) {
      for (const auto& bucket : work_.sync.reductions[stage]) reduced += bucket.duration.value();
    }
    limits.least_backward = std::max(limits.least_backward, scale * reduced);
  }
  return limits;
}

void ListEncoder::Assign(const std::vector<View>& forward, const std::vector<View>& backward,
                         AssignLimits limits) {
  const auto fluid_forward = FluidOf(forward, Direction::kForward);
  const auto fluid_backward = FluidOf(backward, Direction::kBackward);
  const auto assign = [&] {
    Assignment assignment =
        bubble::Assign(fluid_forward, fluid_backward,
                       static_cast<std::int32_t>(work_.micro_batches.size()), limits);
    owned_ = std::move(assignment.owned);
    evaluated_ += assignment.evaluated;
  };
  assign();
  if (!limits.counts.empty()) return;
  // One split, one assignment: the split that was found gives what it would give on request.
  for (const auto& owned : owned_) {
    limits.counts.push_back(static_cast<std::int32_t>(owned.size()));
  }
  assign();
}

std::vector<ListJob> ListEncoder::JobsOf(std::size_t pipeline, Direction direction) const {
  const std::vector<Ps> releases = ReleasesOf(pipeline, direction);
  const std::vector<std::int32_t>& owned = owned_[pipeline];
  std::vector<ListJob> jobs;
  for (std::size_t n = 0; n < owned.size(); ++n) {
    // Mirrored, the last deadline is released first.
    const std::size_t rank = direction == Direction::kForward ? owned.size() - 1 - n : n;
    jobs.push_back(
        {releases[static_cast<std::size_t>(owned[n])], static_cast<std::uint32_t>(rank)});
  }
  return jobs;
}

Ps ListEncoder::PlaceAll(const std::vector<View>& views, Direction direction, Ps floor,
                         absl::FunctionRef<Ps(const ListPlacement&)> cost,
                         std::vector<ListPlacement>& best) {
  const std::size_t pipelines = views.size();
  std::vector<std::size_t> tried(pipelines, 0);
  std::vector<Ps> costs(pipelines, kForever);
  best.assign(pipelines, {});
  ListPlacement placement;
  const auto try_next = [&](std::size_t j) {
    engine_.Run(GraphOf(direction), views[j].view, JobsOf(j, direction), kVariants[tried[j]++],
                placement);
    const Ps now = cost(placement);
    if (now >= costs[j]) return;
    costs[j] = now;
    std::swap(best[j], placement);
  };
  for (std::size_t j = 0; j < pipelines; ++j) try_next(j);
  while (true) {
    const auto costliest = std::max_element(costs.begin(), costs.end());
    const auto j = static_cast<std::size_t>(costliest - costs.begin());
    if (*costliest <= floor || tried[j] == std::size(kVariants)) return *costliest;
    try_next(j);
  }
}

// Every op starts at or after the start of the step, and after its parameters are gathered.
Ps ListEncoder::ShiftFor(const ListPlacement& mirrored) const {
  Ps shift = 0;
  const std::size_t nodes = forward_graph_.nodes;
  for (std::size_t id = 0; id < mirrored.start.size(); ++id) {
    const std::size_t node = id % nodes;
    shift = std::max(shift, gathered_[node] + mirrored.start[id] + forward_graph_.duration[node]);
  }
  return shift;
}

Ps ListEncoder::PlaceForward(const Lanes& lanes, const planner::Split& split, std::int32_t most,
                             Ps least_shift, const std::vector<Picoseconds>& card_free) {
  const std::vector<View> views = ViewsOf(lanes, Direction::kForward, true);
  Assign(views, ViewsOf(lanes, Direction::kBackward, false),
         LimitsOf(split, most, least_shift, card_free));
  std::vector<ListPlacement> best;
  const auto cost = [this](const ListPlacement& placement) { return ShiftFor(placement); };
  const Ps shift = PlaceAll(views, Direction::kForward, least_shift, cost, best);
  forward_.clear();
  for (ListPlacement& placement : best) {
    Times& times = forward_.emplace_back();
    times.start = std::move(placement.start);
    for (std::size_t id = 0; id < times.start.size(); ++id) {
      times.start[id] = -(times.start[id] + forward_graph_.duration[id % forward_graph_.nodes]);
    }
    times.sequence.assign(placement.sequence.rbegin(), placement.sequence.rend());
  }
  return shift;
}

void ListEncoder::MoveForwardEarly(const Lanes& lanes, Ps shift) {
  const std::vector<View> views = ViewsOf(lanes, Direction::kForward, false);
  for (std::size_t j = 0; j < views.size(); ++j) MoveEarly(views[j], shift, forward_[j]);
}

// In the old order each op finds its old place still free, so none comes later than it was.
void ListEncoder::MoveEarly(const View& view, Ps shift, Times& times) const {
  const WorkGraph& graph = forward_graph_;
  std::vector<Cursor> cursors;
  for (const Slots* slots : view.view.slots) cursors.push_back({slots->data(), -kForever});
  for (const std::uint32_t id : times.sequence) {
    const std::uint32_t node = id % graph.nodes;
    Ps from = gathered_[node] - shift;
    // Mirrored: what comes after it in the graph is what it needs.
    for (std::uint32_t e = graph.first_edge[node]; e < graph.first_edge[node + 1]; ++e) {
      const WorkGraph::Edge edge = graph.edges[e];
      const Ps hop = edge.hop < 0 ? 0 : view.view.hops[static_cast<std::size_t>(edge.hop)];
      from = std::max(from, times.start[id - node + edge.to] + graph.duration[edge.to] + hop);
    }
    Cursor& cursor = cursors[graph.resource[node]];
    Cursor moved = cursor;
    const Ps start = moved.Place(from, graph.duration[node]);
    if (start <= times.start[id]) {
      times.start[id] = start;
      cursor = moved;
    } else {
      // An op of no length, at a point that is in no slot because other encoders' ops touch there.
      cursor.free = times.start[id];
    }
  }
}

ListEncoder::Ready ListEncoder::ReadyOf(const ListPlacement& placement) const {
  Ready ready;
  for (std::size_t p = 0; p < static_cast<std::size_t>(backward_graph_.stages); ++p) {
    ready.emplace_back(p < work_.sync.reductions.size() ? work_.sync.reductions[p].size() : 0);
  }
  for (std::size_t id = 0; id < placement.start.size(); ++id) {
    const std::size_t node = id % backward_graph_.nodes;
    if (reduction_[node] < 0) continue;
    const Picoseconds done(placement.start[id] + backward_graph_.duration[node]);
    Picoseconds& bucket =
        ready[backward_graph_.resource[node] / 2U][static_cast<std::size_t>(reduction_[node])];
    bucket = std::max(bucket, done);
  }
  return ready;
}

// When the network cards are done.
Ps ListEncoder::EndOf(const Ready& ready, std::vector<Picoseconds>& card_free) const {
  PlaceReductions(work_, ready, card_free);
  return std::max_element(card_free.begin(), card_free.end())->value();
}

Ps ListEncoder::PlaceBackward(const Lanes& lanes, std::vector<Picoseconds>& card_free) {
  const std::vector<View> views = ViewsOf(lanes, Direction::kBackward, false);
  const Ready none = ReadyOf({});
  // A bucket waits for the last of all pipelines, so the end with all of them is the latest of the
  // ends with each of them alone.
  const auto cost = [&](const ListPlacement& placement) {
    std::vector<Picoseconds> free = card_free;
    return std::max(placement.end, EndOf(ReadyOf(placement), free));
  };
  std::vector<Picoseconds> free = card_free;
  std::vector<ListPlacement> best;
  const Ps end = PlaceAll(views, Direction::kBackward, EndOf(none, free), cost, best);
  Ready ready = none;
  for (const ListPlacement& placement : best) Latest(ReadyOf(placement), ready);
  EndOf(ready, card_free);
  backward_.clear();
  for (ListPlacement& placement : best) {
    backward_.push_back({std::move(placement.start), std::move(placement.sequence)});
  }
  return end;
}

void ListEncoder::Occupy(Direction direction, Lanes& lanes) const {
  const WorkGraph& graph = GraphOf(direction);
  const std::vector<Times>& all = direction == Direction::kForward ? forward_ : backward_;
  for (std::size_t j = 0; j < all.size(); ++j) {
    std::vector<std::vector<Interval>> busy(2 * static_cast<std::size_t>(graph.stages));
    for (const std::uint32_t id : all[j].sequence) {
      const std::uint32_t node = id % graph.nodes;
      const Ps start = all[j].start[id];
      busy[graph.resource[node]].push_back(
          {Picoseconds(start), Picoseconds(start + graph.duration[node])});
    }
    for (std::int32_t p = 0; p < graph.stages; ++p) {
      const PipelinePlace place = PlaceOf(problem_, work_, static_cast<std::int32_t>(j), p);
      for (std::int32_t l = 0; l < place.lane_count; ++l) {
        LaneSlots& lane =
            lanes[static_cast<std::size_t>(LaneIndex(problem_, place.stage, place.first_lane + l))];
        lane.compute = Subtract(lane.compute, busy[2 * static_cast<std::size_t>(p)]);
        lane.link = Subtract(lane.link, busy[2 * static_cast<std::size_t>(p) + 1]);
      }
    }
  }
}

void ListEncoder::FillStage(const WorkGraph& graph, const Times& times, std::size_t job,
                            std::size_t stage, Ps shift, PlacedStage& placed) const {
  const std::size_t first = job * graph.nodes;
  for (std::size_t n = graph.first_node[stage]; n < graph.first_node[stage + 1]; ++n) {
    placed.starts.emplace_back(times.start[first + n] + shift);
  }
}

void ListEncoder::FillUnit(std::size_t pipeline, std::size_t job, Ps shift,
                           PlacedMicroBatch& unit) const {
  const auto position = static_cast<std::size_t>(owned_[pipeline][job]);
  unit.micro_batch = work_.micro_batches[position];
  const std::size_t stages = work_.forward.size();
  unit.forward.resize(stages);
  unit.backward.resize(stages);
  for (std::size_t p = 0; p < stages; ++p) {
    FillStage(forward_graph_, forward_[pipeline], job, p, shift, unit.forward[p]);
    FillStage(backward_graph_, backward_[pipeline], job, p, shift, unit.backward[p]);
  }
  for (const std::uint32_t op : work_.forward.back().outputs) {
    unit.forward_end = std::max(
        unit.forward_end, unit.forward.back().starts[op] + work_.forward.back().ops[op].duration);
  }
  const std::vector<Picoseconds>& first = unit.backward.back().starts;
  unit.backward_start =
      first.empty() ? Picoseconds(ReleasesOf(pipeline, Direction::kBackward)[position] + shift)
                    : *std::min_element(first.begin(), first.end());
}

void ListEncoder::Fill(Ps shift, PlacedEncoder& placed) const {
  for (std::size_t j = 0; j < owned_.size(); ++j) {
    placed.split.push_back(static_cast<std::int32_t>(owned_[j].size()));
    std::vector<PlacedMicroBatch>& units = placed.pipelines.emplace_back().micro_batches;
    units.resize(owned_[j].size());
    for (std::size_t job = 0; job < units.size(); ++job) FillUnit(j, job, shift, units[job]);
    std::stable_sort(units.begin(), units.end(),
                     [](const auto& a, const auto& b) { return a.forward_end < b.forward_end; });
  }
}

}  // namespace optimus::bubble
