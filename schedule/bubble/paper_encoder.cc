#include "schedule/bubble/paper_encoder.h"

#include <algorithm>
#include <utility>

namespace optimus::bubble::paper {
namespace {

std::vector<std::int64_t> NeededBy(const Problem& problem, const EncoderWork& encoder) {
  std::vector<std::int64_t> needed;
  for (const std::int32_t i : encoder.micro_batches) {
    needed.push_back(problem.llm.forward_needed[static_cast<std::size_t>(i)].value());
  }
  return needed;
}

EncoderFlows MakeFlows(const EncoderWork& encoder, const GatherEnds& gathers) {
  EncoderFlows flows;
  flows.forward = ForwardFlow(encoder);
  flows.backward = BackwardFlow(encoder);
  flows.gathers = gathers;
  std::size_t most = 0;
  for (const auto& stage : gathers) most = std::max(most, stage.size());
  flows.no_gathers.assign(gathers.size(), std::vector<std::int64_t>(most, kNever));
  flows.shortest = ShortestOps(encoder);
  return flows;
}

void Join(const InLine& other, InLine& line) {
  for (std::size_t r = 0; r < 2; ++r) line.free[r] = std::max(line.free[r], other.free[r]);
}

std::int64_t LeastEndOf(const EncoderWork& encoder, const Occupation& occupation) {
  return LeastEnd(encoder, occupation.tail).value();
}

// Ops of one micro-batch on one stage that lie in slots.
void AddTaken(const StageWork& work, const PlacedStage& placed, std::array<Slots, 2>& taken) {
  if (!placed.interior) return;
  for (std::size_t i = 0; i < work.ops.size(); ++i) {
    const WorkOp& op = work.ops[i];
    taken[static_cast<std::size_t>(op.resource)].push_back(
        {placed.starts[i], placed.starts[i] + op.duration});
  }
}

void Take(std::array<Slots, 2>& taken, LaneSlots& slots) {
  for (const Resource resource : {Resource::kCompute, Resource::kLink}) {
    Slots& list = taken[static_cast<std::size_t>(resource)];
    std::sort(list.begin(), list.end(), [](const Interval& a, const Interval& b) {
      return std::pair(a.start, a.end) < std::pair(b.start, b.end);
    });
    slots.of(resource) = Subtract(slots.of(resource), list);
  }
}

}  // namespace

Occupation NothingPlaced(const Problem& problem, bool slots) {
  Occupation occupation;
  if (slots) {
    occupation.slots = InteriorSlots(problem);
  } else {
    occupation.slots.resize(problem.llm.stages.size() * static_cast<std::size_t>(problem.lanes));
  }
  for (const LlmStage& stage : problem.llm.stages) {
    for (std::int32_t lane = 0; lane < problem.lanes; ++lane) {
      occupation.before.push_back({{0, 0}});
      occupation.after.push_back({{stage.last_end.value(), stage.last_end.value()}});
    }
  }
  occupation.shift = LeastShift(problem);
  occupation.tail = LlmTail(problem);
  return occupation;
}

EncoderScheduler::EncoderScheduler(const Problem& problem, const EncoderWork& encoder,
                                   const GatherEnds& gathers, Occupation& occupation, bool moves)
    : problem_(problem),
      encoder_(encoder),
      occupation_(occupation),
      flows_(MakeFlows(encoder, gathers)),
      forward_(models_, NeededBy(problem, encoder), occupation.shift.value(), moves),
      backward_(models_, LeastEndOf(encoder, occupation), moves),
      base_((problem.llm.step - problem.llm.after_reduction).value()) {
  const std::int32_t pipelines = PipelineCount(problem, encoder);
  const std::int32_t subgroups = problem.tensor_parallel / encoder.plan.tensor_parallel;
  for (Pipeline j = 0; j < pipelines; ++j) {
    PipelineLanes lanes = LanesOf(j);
    DropShort(flows_.shortest, lanes.slots);
    // Pipelines on the same stages mostly have the same lanes, so one model does for all.
    PipelineModel* alike = nullptr;
    for (Pipeline other = j - j % subgroups; other < j && alike == nullptr; ++other) {
      PipelineModel* model = models_[static_cast<std::size_t>(other)];
      if (SameLanes(model->lanes(), lanes)) alike = model;
    }
    if (alike == nullptr) {
      owned_.push_back(std::make_unique<PipelineModel>(flows_, std::move(lanes)));
      alike = owned_.back().get();
    }
    models_.push_back(alike);
  }
}

PipelinePlace EncoderScheduler::Place(Pipeline pipeline, std::size_t encoder_stage) const {
  return PlaceOf(problem_, encoder_, pipeline, static_cast<std::int32_t>(encoder_stage));
}

PipelineLanes EncoderScheduler::LanesOf(Pipeline pipeline) const {
  PipelineLanes lanes;
  const auto stages = static_cast<std::size_t>(encoder_.plan.pipeline_parallel);
  for (std::size_t p = 0; p < stages; ++p) {
    const PipelinePlace place = Place(pipeline, p);
    LaneSlots slots = SlotsOf(occupation_.slots, problem_, place);
    lanes.slots.push_back({std::move(slots.compute), std::move(slots.link)});
    InLine before;
    InLine after{{kNever, kNever}};
    for (std::int32_t l = 0; l < place.lane_count; ++l) {
      const auto lane =
          static_cast<std::size_t>(LaneIndex(problem_, place.stage, place.first_lane + l));
      Join(occupation_.before[lane], before);
      Join(occupation_.after[lane], after);
    }
    lanes.before.push_back(before);
    lanes.after.push_back(after);
    lanes.first_start.push_back(
        problem_.llm.stages[static_cast<std::size_t>(place.stage)].first_start.value());
  }
  const auto block = static_cast<std::size_t>(Place(pipeline, 0).stage) / stages;
  for (std::size_t q = 0; q + 1 < stages; ++q) {
    const std::size_t hop = block * (stages - 1);
    lanes.forward_hops.push_back(encoder_.forward_hop[hop + q].value());
    lanes.backward_hops.push_back(encoder_.backward_hop[hop + stages - 2 - q].value());
  }
  lanes.to_llm = encoder_.to_llm[static_cast<std::size_t>(pipeline)].value();
  lanes.from_llm = encoder_.from_llm[static_cast<std::size_t>(pipeline)].value();
  return lanes;
}

void EncoderScheduler::Assign(const planner::Split& split) {
  gradients_.resize(split.size());
  sequences_.resize(split.size());
  for (auto& list : gradients_) list.clear();
  const std::vector<Arrival>& arrivals = forward_.Arrivals(split);
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const auto j = static_cast<std::size_t>(arrivals[i].pipeline);
    const std::int32_t micro_batch = encoder_.micro_batches[i];
    const std::int64_t made =
        problem_.llm.backward_made[static_cast<std::size_t>(micro_batch)].value();
    gradients_[j].push_back({made + models_[j]->lanes().from_llm, micro_batch, arrivals[i].order});
  }
  for (std::size_t j = 0; j < split.size(); ++j) {
    std::sort(gradients_[j].begin(), gradients_[j].end());
    sequences_[j].clear();
    for (const Gradient& gradient : gradients_[j]) sequences_[j].push_back(gradient.from);
  }
}

std::int64_t EncoderScheduler::Cost(const planner::Split& split) {
  constexpr auto kNoLimit = std::numeric_limits<std::int64_t>::max();
  const ForwardPlan& plan = forward_.Plan(split);
  if (plan.shift >= best_) return plan.shift;
  Assign(split);
  const std::int64_t limit = best_ == kNoLimit ? kNoLimit : best_ - plan.shift + base_;
  const std::int64_t cost = plan.shift + backward_.End(sequences_, plan.moved, limit) - base_;
  best_ = std::min(best_, cost);
  return cost;
}

PlacedEncoder EncoderScheduler::Place(const planner::Split& split) {
  const ForwardPlan& plan = forward_.Plan(split);
  Assign(split);
  backward_.End(sequences_, plan.moved, std::numeric_limits<std::int64_t>::max());
  PlacedEncoder placed;
  placed.split = split;
  placed.pipelines.resize(split.size());
  for (std::size_t j = 0; j < split.size(); ++j) {
    PlacedPipeline& pipeline = placed.pipelines[j];
    pipeline.micro_batches.resize(static_cast<std::size_t>(split[j]));
    for (PlacedMicroBatch& unit : pipeline.micro_batches) {
      unit.forward.resize(encoder_.forward.size());
      unit.backward.resize(encoder_.backward.size());
    }
    PlaceForwards(static_cast<Pipeline>(j), plan.moved[j], pipeline);
    PlaceBackwards(static_cast<Pipeline>(j), plan.moved[j], backward_.Moved(j), pipeline);
  }
  occupation_.shift = Picoseconds(plan.shift);
  if (&encoder_ == &problem_.encoders.back()) return placed;  // nobody comes after it
  Occupy(placed);
  AddToTail(encoder_, Picoseconds(0), placed, occupation_.tail);
  return placed;
}

void EncoderScheduler::PlaceForwards(Pipeline pipeline, std::size_t moved, PlacedPipeline& placed) {
  PipelineModel& model = *models_[static_cast<std::size_t>(pipeline)];
  const std::size_t count = placed.micro_batches.size();
  std::vector<InLine> lines = model.lanes().before;
  SlotState left;
  for (std::size_t k = 0; k < count; ++k) {
    PlacedMicroBatch& unit = placed.micro_batches[k];
    const bool interior = k >= count - moved;
    const UnitTimes& times =
        interior ? *model.RunSlotsForward(model.SlotsAfterForward(k - (count - moved)), left)
                 : model.RunLineForward(lines);
    Write(times, true, interior, unit);
    unit.forward_end = Picoseconds(times.output);
  }
  TakeLines(pipeline, lines, false);
}

void EncoderScheduler::PlaceBackwards(Pipeline pipeline, std::size_t forward_moved,
                                      std::size_t moved, PlacedPipeline& placed) {
  PipelineModel& model = *models_[static_cast<std::size_t>(pipeline)];
  const auto& gradients = gradients_[static_cast<std::size_t>(pipeline)];
  const std::vector<InLine>& after = model.lanes().after;
  std::vector<InLine> lines(after.rbegin(), after.rend());
  SlotState slots = model.SlotsAfterForward(forward_moved);
  SlotState left;
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    const Gradient& gradient = gradients[k];
    PlacedMicroBatch& unit = placed.micro_batches[static_cast<std::size_t>(gradient.order)];
    const bool interior = k < moved;
    const UnitTimes& times = interior ? *model.RunSlotsBackward(slots, gradient.from, left)
                                      : model.RunLineBackward(lines, gradient.from);
    if (interior) std::swap(slots, left);
    Write(times, false, interior, unit);
    unit.micro_batch = gradient.micro_batch;
    const auto& starts = unit.backward.back().starts;
    unit.backward_start = starts.empty() ? Picoseconds(gradient.from)
                                         : *std::min_element(starts.begin(), starts.end());
  }
  std::reverse(lines.begin(), lines.end());
  TakeLines(pipeline, lines, true);
}

void EncoderScheduler::Write(const UnitTimes& times, bool forward, bool interior,
                             PlacedMicroBatch& unit) const {
  const Flow& flow = forward ? flows_.forward : flows_.backward;
  for (std::size_t q = 0; q < flow.size(); ++q) {
    PlacedStage& stage = forward ? unit.forward[q] : unit.backward[flow.size() - 1 - q];
    const std::vector<FlatOp>& ops = flow[q].ops;
    stage.interior = interior;
    stage.starts.resize(ops.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      stage.starts[i] = Picoseconds(times.ends[q][i + 1] - ops[i].duration);
    }
  }
}

void EncoderScheduler::TakeLines(Pipeline pipeline, const std::vector<InLine>& lines,
                                 bool backward) {
  for (std::size_t p = 0; p < lines.size(); ++p) {
    const PipelinePlace place = Place(pipeline, p);
    for (std::int32_t l = 0; l < place.lane_count; ++l) {
      const auto lane =
          static_cast<std::size_t>(LaneIndex(problem_, place.stage, place.first_lane + l));
      (backward ? occupation_.after : occupation_.before)[lane] = lines[p];
    }
  }
}

void EncoderScheduler::Occupy(const PlacedEncoder& placed) {
  for (std::size_t j = 0; j < placed.pipelines.size(); ++j) {
    for (std::size_t p = 0; p < encoder_.forward.size(); ++p) {
      std::array<Slots, 2> taken;
      for (const PlacedMicroBatch& unit : placed.pipelines[j].micro_batches) {
        AddTaken(encoder_.forward[p], unit.forward[p], taken);
        AddTaken(encoder_.backward[p], unit.backward[p], taken);
      }
      const PipelinePlace place = Place(static_cast<Pipeline>(j), p);
      for (std::int32_t l = 0; l < place.lane_count; ++l) {
        Take(taken, occupation_.slots[static_cast<std::size_t>(
                        LaneIndex(problem_, place.stage, place.first_lane + l))]);
      }
    }
  }
}

void EncoderScheduler::Shift(Picoseconds shift, PlacedEncoder& placed) {
  for (PlacedPipeline& pipeline : placed.pipelines) {
    for (PlacedMicroBatch& unit : pipeline.micro_batches) {
      for (PlacedStage& stage : unit.forward) {
        if (!stage.interior) continue;
        for (Picoseconds& start : stage.starts) start += shift;
      }
      if (unit.forward[0].interior) unit.forward_end += shift;
      for (PlacedStage& stage : unit.backward) {
        for (Picoseconds& start : stage.starts) start += shift;
      }
      unit.backward_start += shift;
    }
  }
}

}  // namespace optimus::bubble::paper
