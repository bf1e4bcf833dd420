#include "schedule/bubble/paper_flow.h"

#include "schedule/bubble/sync.h"

namespace optimus::bubble::paper {
namespace {

// The latest dependency on the other resource, as an index into the ends.
std::uint32_t LatestOther(const StageWork& work, const WorkOp& op) {
  std::uint32_t latest = 0;
  for (std::uint32_t d = 0; d < op.dependency_count; ++d) {
    const std::uint32_t dependency = work.dependencies[op.first_dependency + d];
    if (work.ops[dependency].resource != op.resource) latest = std::max(latest, dependency + 1);
  }
  return latest;
}

FlatStage Flatten(const StageWork& work, const std::vector<EncoderSync::Bucket>& gathers) {
  FlatStage stage;
  stage.ops.reserve(work.ops.size());
  for (const WorkOp& op : work.ops) {
    FlatOp& flat = stage.ops.emplace_back();
    flat.duration = op.duration.value();
    flat.dependency = LatestOther(work, op);
    flat.part = static_cast<std::uint32_t>(op.input_part + 1);
    flat.gather = static_cast<std::uint32_t>(BucketOf(gathers, op.layer) + 1);
    flat.resource = static_cast<std::uint32_t>(op.resource);
  }
  for (const std::uint32_t output : work.outputs) stage.outputs.push_back(output + 1);
  stage.input_parts = static_cast<std::size_t>(std::max(work.input_parts, 0));
  return stage;
}

// Ends only rise along a resource: the last op of each resource counts, for each bucket and for
// the stage as a whole.
std::vector<TailOp> TailOf(const StageWork& work,
                           const std::vector<EncoderSync::Bucket>& reductions) {
  const std::size_t buckets = reductions.size();
  std::vector<std::array<std::uint32_t, 2>> last(buckets + 1, {0, 0});
  for (std::size_t i = 0; i < work.ops.size(); ++i) {
    const auto resource = static_cast<std::size_t>(work.ops[i].resource);
    const auto end = static_cast<std::uint32_t>(i + 1);
    last[buckets][resource] = end;
    const std::int32_t bucket = BucketOf(reductions, work.ops[i].layer);
    if (bucket >= 0) last[static_cast<std::size_t>(bucket)][resource] = end;
  }
  std::vector<TailOp> tail;
  std::int64_t after = 0;
  for (std::size_t b = buckets + 1; b-- > 0;) {
    if (b < buckets) after += reductions[b].duration.value();
    for (const std::uint32_t end : last[b]) {
      if (end > 0) tail.push_back({end, after});
    }
  }
  return tail;
}

const std::vector<EncoderSync::Bucket>& At(
    const std::vector<std::vector<EncoderSync::Bucket>>& by_stage, std::size_t stage) {
  static const auto& none = *new std::vector<EncoderSync::Bucket>();
  return stage < by_stage.size() ? by_stage[stage] : none;
}

}  // namespace

Flow ForwardFlow(const EncoderWork& encoder) {
  Flow flow;
  for (std::size_t p = 0; p < encoder.forward.size(); ++p) {
    flow.push_back(Flatten(encoder.forward[p], At(encoder.sync.gathers, p)));
  }
  return flow;
}

Flow BackwardFlow(const EncoderWork& encoder) {
  Flow flow;
  for (std::size_t p = encoder.backward.size(); p-- > 0;) {
    flow.push_back(Flatten(encoder.backward[p], {}));
    flow.back().tail = TailOf(encoder.backward[p], At(encoder.sync.reductions, p));
  }
  return flow;
}

std::vector<std::array<std::int64_t, 2>> ShortestOps(const EncoderWork& encoder) {
  constexpr auto kNone = std::numeric_limits<std::int64_t>::max();
  std::vector<std::array<std::int64_t, 2>> shortest(encoder.forward.size(), {kNone, kNone});
  for (const auto* works : {&encoder.forward, &encoder.backward}) {
    for (std::size_t p = 0; p < works->size(); ++p) {
      for (const WorkOp& op : (*works)[p].ops) {
        std::int64_t& least = shortest[p][static_cast<std::size_t>(op.resource)];
        least = std::min(least, op.duration.value());
      }
    }
  }
  return shortest;
}

void SlotWalker::Begin(const Slots& slots, Slots& left, std::int64_t from, std::int64_t shortest,
                       bool forget) {
  const Interval* first = slots.data();
  last_ = first + slots.size();
  at_ = std::lower_bound(first, last_, from, [](const Interval& slot, std::int64_t time) {
    return slot.end.value() < time;
  });
  left.clear();
  if (!forget) left.insert(left.end(), first, at_);
  start_ = at_ == last_ ? 0 : at_->start.value();
  shortest_ = shortest;
  left_ = &left;
}

void SlotWalker::Finish() {
  if (at_ == last_) return;
  Keep(at_->end.value());
  left_->insert(left_->end(), at_ + 1, last_);
}

void PassOn(const FlatStage& stage, const std::vector<std::int64_t>& ends, std::size_t next_parts,
            std::int64_t hop, UnitTimes& times) {
  if (stage.ops.empty()) {
    times.output += hop;
    times.arrivals.assign(1 + next_parts, times.output);
    times.arrivals[0] = kNever;
    return;
  }
  times.arrivals.assign(1 + stage.outputs.size(), kNever);
  times.output = stage.outputs.empty() ? *std::max_element(ends.begin(), ends.end()) + hop : kNever;
  for (std::size_t i = 0; i < stage.outputs.size(); ++i) {
    times.arrivals[1 + i] = ends[stage.outputs[i]] + hop;
    times.output = std::max(times.output, times.arrivals[1 + i]);
  }
}

}  // namespace optimus::bubble::paper
