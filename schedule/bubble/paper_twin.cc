#include "schedule/bubble/paper_twin.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "schedule/bubble/paper_twin_machines.h"
#include "schedule/ir/schedule.h"

namespace optimus::bubble::testing {
namespace {

struct World {
  Machines machines;
  Picoseconds shift;
  std::vector<Picoseconds> card;  // by LLM stage: gradients are reduced
  Picoseconds end;
};

enum class How { kBefore, kAfter, kSlots };

int Rank(std::int16_t layer) { return layer == ir::kProjectorLayer ? 1 << 20 : layer; }

// The cards of a stage gather one bucket after the other, together with the other stages that hold
// the same layers. By encoder stage.
std::vector<std::vector<Interval>> Gather(const EncoderWork& encoder,
                                          std::vector<Picoseconds>& card) {
  const auto stages = static_cast<std::size_t>(encoder.plan.pipeline_parallel);
  std::vector<std::vector<Interval>> gathers(stages);
  for (std::size_t p = 0; p < encoder.sync.gathers.size(); ++p) {
    for (const EncoderSync::Bucket& bucket : encoder.sync.gathers[p]) {
      Picoseconds start;
      for (std::size_t d = p; d < card.size(); d += stages) start = std::max(start, card[d]);
      for (std::size_t d = p; d < card.size(); d += stages) card[d] = start + bucket.duration;
      gathers[p].push_back({start, start + bucket.duration});
    }
  }
  return gathers;
}

// Everything about one encoder; a split is scheduled from scratch.
class Twin {
 public:
  Twin(const Problem& problem, std::size_t index, bool moves, World& world)
      : problem_(problem), encoder_(problem.encoders[index]), moves_(moves), world_(world) {
    std::vector<Picoseconds> card(problem.llm.stages.size());
    for (std::size_t e = 0; e < index; ++e) Gather(problem.encoders[e], card);
    gathers_ = Gather(encoder_, card);
  }

  struct Outcome {
    PlacedEncoder placed;
    Picoseconds shift, end;
    World world;
  };

  Outcome Schedule(const planner::Split& split) {
    placed_ = {};
    placed_.split = split;
    placed_.pipelines.resize(split.size());
    in_line_ = split;
    ScheduleForwards();
    Assign();
    ScheduleBackwards();
    return Finish();
  }

 private:
  using Starts = std::vector<std::vector<Picoseconds>>;  // by encoder stage and op

  static bool Holds(const EncoderSync::Bucket& bucket, std::int16_t layer) {
    return Rank(bucket.first_layer) <= Rank(layer) && Rank(layer) <= Rank(bucket.last_layer);
  }

  Picoseconds Gathered(std::size_t p, std::int16_t layer) const {
    Picoseconds end = kLongAgo;
    for (std::size_t b = 0; b < gathers_[p].size(); ++b) {
      if (Holds(encoder_.sync.gathers[p][b], layer)) end = gathers_[p][b].end;
    }
    return end;
  }

  std::vector<MachineKey> Keys(std::int32_t j, std::size_t p, Resource resource) const {
    const PipelinePlace place = PlaceOf(problem_, encoder_, j, static_cast<std::int32_t>(p));
    std::vector<MachineKey> keys;
    keys.reserve(place.lane_count);
    for (std::int32_t l = 0; l < place.lane_count; ++l) {
      keys.emplace_back(place.stage, place.first_lane + l, resource);
    }
    return keys;
  }

  Picoseconds Hop(bool forward, std::int32_t j, std::size_t p) const {
    const auto stages = encoder_.forward.size();
    const PipelinePlace place = PlaceOf(problem_, encoder_, j, 0);
    const std::size_t first = static_cast<std::size_t>(place.stage) / stages * (stages - 1);
    return (forward ? encoder_.forward_hop : encoder_.backward_hop)[first + p];
  }

  // One micro-batch on pipeline j. The machines change only if it is placed.
  std::optional<Starts> Run(Machines& machines, std::int32_t j, bool forward, How how,
                            Picoseconds from) const {
    Machines tentative = machines;
    const auto& works = forward ? encoder_.forward : encoder_.backward;
    Starts starts(works.size());
    std::vector<Picoseconds> parts(64, from);
    Picoseconds passed = from;
    for (std::size_t q = 0; q < works.size(); ++q) {
      const std::size_t p = forward ? q : works.size() - 1 - q;
      if (!RunStage(machines, tentative, j, p, forward, how, from, parts, starts[p]))
        return std::nullopt;
      const StageWork& work = works[p];
      if (!work.ops.empty()) {
        passed = kLongAgo;
        parts.assign(64, kLongAgo);
        for (std::size_t i = 0; i < work.outputs.size(); ++i) {
          const std::uint32_t op = work.outputs[i];
          parts[i] = starts[p][op] + work.ops[op].duration;
          passed = std::max(passed, parts[i]);
        }
      }
      if (q + 1 == works.size()) break;
      const Picoseconds hop = Hop(forward, j, forward ? p : p - 1);
      for (Picoseconds& part : parts) part += hop;
      passed += hop;
      if (work.ops.empty()) parts.assign(64, passed);
    }
    machines = tentative;
    return starts;
  }

  bool RunStage(const Machines& machines, Machines& tentative, std::int32_t j, std::size_t p,
                bool forward, How how, Picoseconds from, const std::vector<Picoseconds>& parts,
                std::vector<Picoseconds>& starts) const {
    const StageWork& work = (forward ? encoder_.forward : encoder_.backward)[p];
    std::map<Resource, Picoseconds> previous = {{Resource::kCompute, kLongAgo},
                                                {Resource::kLink, kLongAgo}};
    for (const WorkOp& op : work.ops) {
      Picoseconds ready = std::max(from, previous[op.resource]);
      if (op.input_part >= 0) ready = std::max(ready, parts[op.input_part]);
      if (forward && how == How::kBefore) ready = std::max(ready, Gathered(p, op.layer));
      for (std::uint32_t d = 0; d < op.dependency_count; ++d) {
        const std::uint32_t other = work.dependencies[op.first_dependency + d];
        ready = std::max(ready, starts[other] + work.ops[other].duration);
      }
      const auto keys = Keys(j, p, op.resource);
      std::optional<Picoseconds> start = ready;
      if (how == How::kSlots) {
        start = FirstFit(machines, keys, ready, op.duration);
        if (!start.has_value()) return false;
      } else {
        for (const MachineKey& key : keys) {
          const Machine& machine = tentative.at(key);
          start = std::max(*start, how == How::kBefore ? machine.before : machine.after);
        }
      }
      starts.push_back(*start);
      previous[op.resource] = *start + op.duration;
      for (const MachineKey& key : keys) {
        Machine& machine = tentative.at(key);
        if (how == How::kSlots) TakeSlot(machine, {*start, *start + op.duration});
        if (how == How::kBefore) machine.before = *start + op.duration;
        if (how == How::kAfter) machine.after = *start + op.duration;
      }
    }
    return true;
  }

  // ---- forward
  // -----------------------------------------------------------------------------------

  struct Coming {
    Picoseconds at;
    std::int32_t pipeline, order;
    // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14
    auto operator<=>(const Coming&) const = default;
  };
  // All forwards for in_line_ in line, the rest of each pipeline in slots.
  struct Forwards {
    std::vector<std::vector<Starts>> starts;  // by pipeline and order
    std::vector<Coming> line, slots;          // sorted
    std::vector<Picoseconds> overflow;        // by pipeline
    Machines machines;
  };

  Picoseconds OutputEnd(const Starts& starts, Picoseconds nothing) const {
    const StageWork& work = encoder_.forward.back();
    Picoseconds end = work.ops.empty() ? nothing : kLongAgo;
    for (const std::uint32_t op : work.outputs) {
      end = std::max(end, starts.back()[op] + work.ops[op].duration);
    }
    return end;
  }

  std::optional<Forwards> PlaceForwards() const {
    Forwards forwards;
    forwards.machines = world_.machines;
    for (std::int32_t j = 0; j < static_cast<std::int32_t>(in_line_.size()); ++j) {
      auto& starts = forwards.starts.emplace_back();
      for (std::int32_t k = 0; k < placed_.split[j]; ++k) {
        const bool line = k < in_line_[j];
        auto run =
            Run(forwards.machines, j, true, line ? How::kBefore : How::kSlots, Picoseconds(0));
        if (!run.has_value()) return std::nullopt;
        const Picoseconds at = OutputEnd(*run, Picoseconds(0)) + encoder_.to_llm[j];
        (line ? forwards.line : forwards.slots).push_back({at, j, k});
        starts.push_back(*run);
      }
      forwards.overflow.push_back(Overflow(forwards.machines, j));
    }
    std::sort(forwards.line.begin(), forwards.line.end());
    std::sort(forwards.slots.begin(), forwards.slots.end());
    return forwards;
  }

  Picoseconds Overflow(const Machines& machines, std::int32_t j) const {
    Picoseconds most = kLongAgo;
    for (std::size_t p = 0; p < encoder_.forward.size() && in_line_[j] > 0; ++p) {
      for (const Resource resource : {Resource::kCompute, Resource::kLink}) {
        for (const MachineKey& key : Keys(j, p, resource)) {
          most = std::max(
              most, machines.at(key).before - problem_.llm.stages[std::get<0>(key)].first_start);
        }
      }
    }
    return most;
  }

  Picoseconds Needed(std::size_t i) const {
    return problem_.llm.forward_needed[encoder_.micro_batches[i]];
  }

  // For every i: i + 1 micro-batches have come when the LLM, so much later, needs its i-th.
  bool InTime(const Forwards& forwards, Picoseconds shift) const {
    for (const Picoseconds overflow : forwards.overflow) {
      if (overflow > shift) return false;
    }
    for (std::size_t i = 0; i < encoder_.micro_batches.size(); ++i) {
      std::size_t come = 0;
      for (const Coming& each : forwards.line) come += each.at <= Needed(i) + shift ? 1 : 0;
      for (const Coming& each : forwards.slots) come += each.at <= Needed(i) ? 1 : 0;
      if (come < i + 1) return false;
    }
    return true;
  }

  std::optional<Picoseconds> LeastShift(const Forwards& forwards) const {
    std::set<Picoseconds> candidates = {world_.shift};
    candidates.insert(forwards.overflow.begin(), forwards.overflow.end());
    for (const Coming& each : forwards.line) {
      for (std::size_t i = 0; i < encoder_.micro_batches.size(); ++i) {
        candidates.insert(each.at - Needed(i));
      }
    }
    for (const Picoseconds shift : candidates) {
      if (shift >= world_.shift && InTime(forwards, shift)) return shift;
    }
    return std::nullopt;
  }

  // The pipeline because of which the shift cannot be less.
  std::optional<std::int32_t> Critical(const Forwards& forwards, Picoseconds shift) const {
    if (shift == world_.shift) return std::nullopt;
    for (std::size_t j = 0; j < forwards.overflow.size(); ++j) {
      if (forwards.overflow[j] == shift) return static_cast<std::int32_t>(j);
    }
    for (std::size_t i = 0; i < encoder_.micro_batches.size(); ++i) {
      std::size_t come = 0;
      for (const Coming& each : forwards.slots) come += each.at <= Needed(i) ? 1 : 0;
      if (come > i) continue;
      const Coming& last = forwards.line[i - come];
      if (last.at - Needed(i) == shift) return last.pipeline;
    }
    return std::nullopt;
  }

  void ScheduleForwards() {
    forwards_ = *PlaceForwards();
    shift_ = *LeastShift(forwards_);
    while (moves_) {
      const auto critical = Critical(forwards_, shift_);
      if (!critical.has_value()) return;
      --in_line_[*critical];
      const auto next = PlaceForwards();
      const auto shift = next.has_value() ? LeastShift(*next) : std::nullopt;
      if (!shift.has_value() || *shift > shift_) {
        ++in_line_[*critical];
        return;
      }
      forwards_ = *next;
      shift_ = *shift;
    }
  }

  void Assign() {
    std::vector<Coming> all = forwards_.line;
    for (Coming each : forwards_.slots) {
      each.at += shift_;
      all.push_back(each);
    }
    std::sort(all.begin(), all.end());
    for (std::size_t j = 0; j < placed_.pipelines.size(); ++j) {
      auto& units = placed_.pipelines[j].micro_batches;
      units.resize(placed_.split[j]);
      for (std::size_t k = 0; k < units.size(); ++k) {
        const bool interior = static_cast<std::int32_t>(k) >= in_line_[j];
        const Picoseconds shift = interior ? shift_ : Picoseconds(0);
        for (std::vector<Picoseconds> starts : forwards_.starts[j][k]) {
          for (Picoseconds& start : starts) start += shift;
          units[k].forward.push_back({starts, interior});
        }
        units[k].forward_end = OutputEnd(forwards_.starts[j][k], Picoseconds(0)) + shift;
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      placed_.pipelines[all[i].pipeline].micro_batches[all[i].order].micro_batch =
          encoder_.micro_batches[i];
    }
  }

  // ---- backward
  // ----------------------------------------------------------------------------------

  // By pipeline: its micro-batches (index in the pipeline) in order of their gradients.
  std::vector<std::size_t> ByGradient(std::size_t j) const {
    const auto& units = placed_.pipelines[j].micro_batches;
    std::vector<std::size_t> order(units.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const auto key = [&](std::size_t k) {
        return std::pair(problem_.llm.backward_made[units[k].micro_batch], units[k].micro_batch);
      };
      return key(a) < key(b);
    });
    return order;
  }

  struct Backwards {
    std::vector<Starts> starts;  // in order of gradients
    Machines machines;
    Picoseconds end;
  };

  // The first `moved` gradients of pipeline j in slots, the others in line.
  std::optional<Backwards> PlaceBackwards(std::size_t j, std::size_t moved) const {
    Backwards backwards;
    backwards.machines = forwards_.machines;
    const auto& units = placed_.pipelines[j].micro_batches;
    const std::vector<std::size_t> order = ByGradient(j);
    for (std::size_t k = 0; k < order.size(); ++k) {
      const Picoseconds from =
          problem_.llm.backward_made[units[order[k]].micro_batch] + encoder_.from_llm[j];
      const auto run = Run(backwards.machines, static_cast<std::int32_t>(j), false,
                           k < moved ? How::kSlots : How::kAfter, from);
      if (!run.has_value()) return std::nullopt;
      backwards.starts.push_back(*run);
    }
    std::vector<Picoseconds> free(problem_.llm.stages.size(), kLongAgo);
    backwards.end = Reduce({backwards.starts}, free, nullptr);
    return backwards;
  }

  // The end of everything: all ops, and all reductions on cards that are free from `free` on.
  Picoseconds Reduce(const std::vector<std::vector<Starts>>& pipelines,
                     std::vector<Picoseconds>& free,
                     std::vector<std::vector<Interval>>* placed) const {
    const auto stages = encoder_.forward.size();
    Picoseconds end = kLongAgo;
    for (std::size_t p = 0; p < stages; ++p) {
      end = std::max(end, Done(pipelines, p, nullptr));
      if (placed != nullptr) placed->emplace_back();
      if (p >= encoder_.sync.reductions.size()) continue;
      for (const EncoderSync::Bucket& bucket : encoder_.sync.reductions[p]) {
        Picoseconds start = Done(pipelines, p, &bucket);
        for (std::size_t d = p; d < free.size(); d += stages) start = std::max(start, free[d]);
        for (std::size_t d = p; d < free.size(); d += stages) free[d] = start + bucket.duration;
        if (placed != nullptr) placed->back().push_back({start, start + bucket.duration});
        if (start > kLongAgo) end = std::max(end, start + bucket.duration);
      }
    }
    return end;
  }

  Picoseconds Done(const std::vector<std::vector<Starts>>& pipelines, std::size_t p,
                   const EncoderSync::Bucket* bucket) const {
    Picoseconds done = kLongAgo;
    const StageWork& work = encoder_.backward[p];
    for (const auto& units : pipelines) {
      for (const Starts& starts : units) {
        for (std::size_t i = 0; i < work.ops.size(); ++i) {
          if (bucket != nullptr && !Holds(*bucket, work.ops[i].layer)) continue;
          done = std::max(done, starts[p][i] + work.ops[i].duration);
        }
      }
    }
    return done;
  }

  void ScheduleBackwards() {
    const std::size_t pipelines = placed_.pipelines.size();
    backwards_.clear();
    moved_.assign(pipelines, 0);
    for (std::size_t j = 0; j < pipelines; ++j) backwards_.push_back(*PlaceBackwards(j, 0));
    std::vector<Picoseconds> cards = world_.card;
    const Picoseconds least = std::max(world_.end, Reduce({}, cards, nullptr));
    while (moves_) {
      std::size_t last = 0;
      for (std::size_t j = 1; j < pipelines; ++j) {
        if (backwards_[j].end > backwards_[last].end) last = j;
      }
      const bool all = moved_[last] == placed_.pipelines[last].micro_batches.size();
      if (backwards_[last].end <= least || all) return;
      const auto next = PlaceBackwards(last, moved_[last] + 1);
      if (!next.has_value() || next->end >= backwards_[last].end) return;
      backwards_[last] = *next;
      ++moved_[last];
    }
  }

  // ---- the end
  // -----------------------------------------------------------------------------------

  Outcome Finish() {
    Outcome outcome{placed_, shift_, {}, world_};
    std::vector<std::vector<Starts>> all;
    for (std::size_t j = 0; j < backwards_.size(); ++j) {
      WriteBackwards(j, outcome.placed.pipelines[j].micro_batches);
      all.push_back(backwards_[j].starts);
      for (std::size_t p = 0; p < encoder_.forward.size(); ++p) {
        for (const Resource resource : {Resource::kCompute, Resource::kLink}) {
          for (const MachineKey& key : Keys(static_cast<std::int32_t>(j), p, resource)) {
            outcome.world.machines[key] = backwards_[j].machines.at(key);
          }
        }
      }
    }
    std::vector<Picoseconds> cards = world_.card;
    outcome.end = std::max(world_.end, Reduce(all, cards, &outcome.placed.reductions));
    outcome.placed.gathers = gathers_;
    outcome.world.card = cards;
    outcome.world.shift = shift_;
    outcome.world.end = outcome.end;
    return outcome;
  }

  void WriteBackwards(std::size_t j, std::vector<PlacedMicroBatch>& units) const {
    const std::vector<std::size_t> order = ByGradient(j);
    for (std::size_t k = 0; k < order.size(); ++k) {
      PlacedMicroBatch& unit = units[order[k]];
      for (std::vector<Picoseconds> starts : backwards_[j].starts[k]) {
        for (Picoseconds& start : starts) start += shift_;
        unit.backward.push_back({starts, k < moved_[j]});
      }
      const auto& last = unit.backward.back().starts;
      unit.backward_start = last.empty() ? problem_.llm.backward_made[unit.micro_batch] +
                                               encoder_.from_llm[j] + shift_
                                         : *std::min_element(last.begin(), last.end());
    }
  }

  const Problem& problem_;
  const EncoderWork& encoder_;
  bool moves_;
  World& world_;
  std::vector<std::vector<Interval>> gathers_;
  PlacedEncoder placed_;
  planner::Split in_line_;
  Forwards forwards_;
  Picoseconds shift_;
  std::vector<Backwards> backwards_;
  std::vector<std::size_t> moved_;
};

World Start(const Problem& problem) {
  World world;
  std::vector<Picoseconds> gathers(problem.llm.stages.size());
  for (std::size_t d = 0; d < problem.llm.stages.size(); ++d) {
    const LlmStage& stage = problem.llm.stages[d];
    for (std::int32_t lane = 0; lane < problem.lanes; ++lane) {
      const auto key = static_cast<std::int32_t>(d);
      world.machines[{key, lane, Resource::kCompute}] = {stage.compute_idle, {}, stage.last_end};
      world.machines[{key, lane, Resource::kLink}] = {stage.link_idle, {}, stage.last_end};
    }
    world.card.push_back(stage.gradients_reduced);
    world.end = std::max(world.end, stage.gradients_reduced);
  }
  return world;
}

Picoseconds GathersEnd(const Problem& problem) {
  std::vector<Picoseconds> card(problem.llm.stages.size());
  for (const EncoderWork& encoder : problem.encoders) Gather(encoder, card);
  return *std::max_element(card.begin(), card.end());
}

void Delay(PlacedEncoder& placed, Picoseconds delay) {
  for (PlacedPipeline& pipeline : placed.pipelines) {
    for (PlacedMicroBatch& unit : pipeline.micro_batches) {
      const bool interior = unit.forward[0].interior;
      for (PlacedStage& stage : unit.forward) {
        for (Picoseconds& start : stage.starts) start += interior ? delay : Picoseconds(0);
      }
      if (interior) unit.forward_end += delay;
      for (PlacedStage& stage : unit.backward) {
        for (Picoseconds& start : stage.starts) start += delay;
      }
      unit.backward_start += delay;
    }
  }
}

Result Slow(const Problem& problem, const SearchOptions& options, bool moves) {
  Result result;
  World world = Start(problem);
  world.shift = GathersEnd(problem);
  std::vector<Picoseconds> shifts;
  for (std::size_t e = 0; e < problem.encoders.size(); ++e) {
    Twin twin(problem, e, moves, world);
    planner::Split split;
    if (options.splits.empty()) {
      const auto cost = [&](const planner::Split& each) {
        const auto outcome = twin.Schedule(each);
        return (outcome.shift + outcome.end).value();
      };
      const auto pipelines = PipelineCount(problem, problem.encoders[e]);
      const auto count = static_cast<std::int32_t>(problem.encoders[e].micro_batches.size());
      split = (options.exhaustive ? planner::ExhaustiveSearch(count, pipelines, cost)
                                  : planner::LocalSearch(count, pipelines, cost))
                  .split;
    } else {
      split = options.splits[e];
    }
    auto outcome = twin.Schedule(split);
    shifts.push_back(outcome.shift);
    result.encoders.push_back(outcome.placed);
    world = outcome.world;
  }
  result.delta_f = world.shift;
  for (std::size_t e = 0; e < shifts.size(); ++e) {
    Delay(result.encoders[e], result.delta_f - shifts[e]);
    for (auto& stage : result.encoders[e].reductions) {
      for (Interval& bucket : stage) {
        bucket = {bucket.start + result.delta_f, bucket.end + result.delta_f};
      }
    }
  }
  result.delta_b = world.end + problem.llm.after_reduction - problem.llm.step;
  result.latency = problem.llm.step + result.delta_f + result.delta_b;
  return result;
}

}  // namespace

Result SlowPaper(const Problem& problem, const SearchOptions& options) {
  Result fine = Slow(problem, options, true);
  SearchOptions same;
  for (const PlacedEncoder& placed : fine.encoders) same.splits.push_back(placed.split);
  Result coarse = Slow(problem, same, false);
  Result result = coarse.latency < fine.latency ? coarse : fine;
  result.coarse_latency = coarse.latency;
  return result;
}

}  // namespace optimus::bubble::testing
