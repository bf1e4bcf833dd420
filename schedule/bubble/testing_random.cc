#include "schedule/bubble/testing_random.h"

#include "base/phase.h"

namespace optimus::bubble::testing {
namespace {

// --- the LLM ------------------------------------------------------------------------------------

// Sorted, disjoint, not empty, with gaps: slots inside [first, last], touching neither if
// `inside`.
std::vector<Interval> RandomSlots(Random& random, std::int64_t first, std::int64_t last,
                                  std::int64_t scale, bool inside) {
  std::vector<Interval> slots;
  std::int64_t time = first + random.Between(inside ? 1 : 0, scale);
  while (time < last) {
    const std::int64_t end = std::min(time + random.Between(1, scale), last);
    if (inside && end == last) break;
    slots.push_back({Picoseconds(time), Picoseconds(end)});
    time = end + random.Between(1, scale);
  }
  return slots;
}

LlmStage RandomLlmStage(Random& random, const RandomShape& shape) {
  LlmStage stage;
  const std::int64_t scale = shape.llm_scale;
  const std::int64_t length = random.Between(1, 2 * scale * std::max(shape.micro_batches, 1));
  stage.first_start = random.Time(3 * scale);
  stage.last_end = stage.first_start + Picoseconds(length);
  const std::int64_t first = stage.first_start.value();
  stage.compute_idle = RandomSlots(random, first, first + length, scale, /*inside=*/true);
  stage.link_idle = RandomSlots(random, first, first + length, scale, /*inside=*/false);
  stage.compute = stage.last_end - stage.first_start;
  for (const Interval& slot : stage.compute_idle) stage.compute -= slot.length();
  stage.gradients_reduced = stage.last_end + random.Time(random.Chance(50) ? 0 : 2 * scale);
  return stage;
}

LlmTimeline RandomLlm(Random& random, const RandomShape& shape) {
  LlmTimeline llm;
  for (std::int32_t s = 0; s < shape.stages; ++s) {
    llm.stages.push_back(RandomLlmStage(random, shape));
  }
  const LlmStage& stage = llm.stages[0];
  std::vector<std::int64_t> times(2 * static_cast<std::size_t>(shape.micro_batches));
  for (std::int64_t& time : times) {
    time = random.Between(stage.first_start.value(), stage.last_end.value());
  }
  // A micro-batch's forward is before its backward: of the sorted times, the k-th forward takes one
  // before the k-th backward.
  std::sort(times.begin(), times.end());
  std::int32_t forwards = 0;
  std::int32_t backwards = 0;
  for (const std::int64_t time : times) {
    const bool may_forward = forwards < shape.micro_batches;
    const bool may_backward = backwards < forwards;
    if (may_forward && (!may_backward || random.Chance(60))) {
      llm.forward_needed.emplace_back(time);
      ++forwards;
    } else {
      llm.backward_made.emplace_back(time);
      ++backwards;
    }
  }
  llm.after_reduction = random.Time(shape.llm_scale);
  for (const LlmStage& each : llm.stages) llm.step = std::max(llm.step, each.gradients_reduced);
  llm.step += llm.after_reduction;
  return llm;
}

// --- the work of an encoder ---------------------------------------------------------------------

// Writes ops that hang on each other slice by slice.
class WorkWriter {
 public:
  WorkWriter(Random& random, std::int64_t scale, StageWork& work)
      : random_(random), scale_(scale), work_(work) {}

  // `after`: ops that must have ended.
  std::uint32_t Add(Resource resource, Phase phase, std::int16_t layer, std::int16_t slice,
                    std::int32_t chain, std::int16_t input_part,
                    const std::vector<std::uint32_t>& after) {
    WorkOp op;
    op.resource = resource;
    op.duration = random_.Chance(10) ? Picoseconds(0) : random_.Time(scale_);
    op.work = 0;
    op.phase = phase;
    op.layer = layer;
    op.slice = slice;
    op.input_part = input_part;
    op.first_dependency = static_cast<std::uint32_t>(work_.dependencies.size());
    op.dependency_count = static_cast<std::uint32_t>(after.size());
    work_.dependencies.insert(work_.dependencies.end(), after.begin(), after.end());
    (resource == Resource::kCompute ? work_.compute : work_.link) += op.duration;
    work_.ops.push_back(op);
    work_.chain.push_back(chain);
    return static_cast<std::uint32_t>(work_.ops.size() - 1);
  }
  Resource AnyResource() { return random_.Chance(70) ? Resource::kCompute : Resource::kLink; }
  Random& random() { return random_; }

 private:
  Random& random_;
  std::int64_t scale_;
  StageWork& work_;
};

struct LayerRange {
  std::int16_t first = 0, count = 1;
  bool projector = false;
};

// Layers outside, slices inside; the projector behind all slices.
StageWork ForwardWork(Random& random, const RandomShape& shape, const LayerRange& layers,
                      std::int16_t slices, bool first_stage) {
  StageWork work;
  work.input_parts = slices;
  WorkWriter writer(random, shape.encoder_scale, work);
  std::vector<std::vector<std::uint32_t>> last(slices);
  for (std::int16_t l = 0; l < layers.count; ++l) {
    for (std::int16_t slice = 0; slice < slices; ++slice) {
      const std::int64_t ops = random.Between(1, 3);
      for (std::int64_t i = 0; i < ops; ++i) {
        const bool needs_input = l == 0 && i == 0 && !first_stage;
        last[slice] = {writer.Add(writer.AnyResource(), Phase::kForward,
                                  static_cast<std::int16_t>(layers.first + l), slice, slice,
                                  needs_input ? slice : std::int16_t{-1}, last[slice])};
      }
    }
  }
  std::vector<std::uint32_t> all;
  for (const auto& one : last) all.insert(all.end(), one.begin(), one.end());
  if (layers.projector) {
    all = {
        writer.Add(Resource::kCompute, Phase::kForward, ir::kProjectorLayer, -1, slices, -1, all)};
  }
  work.outputs = all;
  return work;
}

// The mirror: the projector, then layers from the last, with a weight gradient beside each. The
// last stage's input is the LLM's gradient, in one part.
StageWork BackwardWork(Random& random, const RandomShape& shape, const LayerRange& layers,
                       std::int16_t slices, bool frozen) {
  StageWork work;
  work.input_parts = layers.projector ? 1 : slices;
  WorkWriter writer(random, shape.encoder_scale, work);
  std::vector<std::vector<std::uint32_t>> last(slices);
  if (layers.projector) {
    const std::uint32_t projector =
        writer.Add(Resource::kCompute, Phase::kBackward, ir::kProjectorLayer, -1, slices, 0, {});
    for (auto& one : last) one = {projector};
  }
  if (frozen) {
    work.outputs.clear();
    return work;
  }
  for (std::int16_t l = layers.count; l-- > 0;) {
    const auto layer = static_cast<std::int16_t>(layers.first + l);
    for (std::int16_t slice = 0; slice < slices; ++slice) {
      const bool needs_input = l == layers.count - 1 && !layers.projector;
      const std::uint32_t gradient =
          writer.Add(writer.AnyResource(), Phase::kBackward, layer, slice, slice,
                     needs_input ? slice : std::int16_t{-1}, last[slice]);
      if (random.Chance(50)) {
        writer.Add(Resource::kCompute, Phase::kWeightGradient, layer, slice, slice, -1, {gradient});
      }
      last[slice] = {gradient};
      if (random.Chance(50)) {
        last[slice] = {writer.Add(writer.AnyResource(), Phase::kBackward, layer, slice, slice, -1,
                                  {gradient})};
      }
    }
  }
  for (const auto& one : last) work.outputs.insert(work.outputs.end(), one.begin(), one.end());
  return work;
}

// One bucket a layer, or one for all.
std::vector<EncoderSync::Bucket> Buckets(Random& random, const RandomShape& shape,
                                         const LayerRange& layers, bool layerwise, bool reverse,
                                         bool only_projector) {
  std::vector<std::int16_t> names;
  for (std::int16_t l = 0; l < layers.count && !only_projector; ++l) {
    names.push_back(static_cast<std::int16_t>(layers.first + l));
  }
  if (layers.projector) names.push_back(ir::kProjectorLayer);
  std::vector<EncoderSync::Bucket> buckets;
  if (names.empty()) return buckets;
  if (!layerwise) {
    return {{names.front(), names.back(), random.Time(shape.encoder_scale), 0}};
  }
  if (reverse) std::reverse(names.begin(), names.end());
  for (const std::int16_t name : names) {
    buckets.push_back({name, name, random.Time(shape.encoder_scale), 0});
  }
  return buckets;
}

std::int32_t RandomDivisor(Random& random, std::int32_t number) {
  std::vector<std::int32_t> divisors;
  for (std::int32_t d = 1; d <= number; ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return divisors[random.Between(0, static_cast<std::int64_t>(divisors.size()) - 1)];
}

std::vector<Picoseconds> Times(Random& random, std::size_t count, std::int64_t most) {
  std::vector<Picoseconds> times(count);
  for (Picoseconds& time : times) time = random.Time(most);
  return times;
}

void AddStages(Random& random, const RandomShape& shape, EncoderWork& encoder) {
  const std::int32_t stages = encoder.plan.pipeline_parallel;
  const auto slices = static_cast<std::int16_t>(random.Between(1, 3));
  const bool synced = shape.sync && random.Chance(60);
  const bool layerwise = random.Chance(60);
  LayerRange layers;
  for (std::int32_t p = 0; p < stages; ++p) {
    layers.first = static_cast<std::int16_t>(layers.first + (p == 0 ? 0 : layers.count));
    layers.count = static_cast<std::int16_t>(random.Between(1, 2));
    layers.projector = p == stages - 1;
    encoder.forward.push_back(ForwardWork(random, shape, layers, slices, p == 0));
    encoder.backward.push_back(BackwardWork(random, shape, layers, slices, encoder.frozen));
    if (!synced) continue;
    encoder.sync.gathers.push_back(
        Buckets(random, shape, layers, layerwise, /*reverse=*/false, encoder.frozen));
    encoder.sync.reductions.push_back(
        Buckets(random, shape, layers, layerwise, /*reverse=*/true, encoder.frozen));
  }
}

EncoderWork RandomEncoder(Random& random, const RandomShape& shape, std::int32_t index) {
  EncoderWork encoder;
  encoder.encoder = index;
  encoder.plan = {RandomDivisor(random, shape.stages),
                  RandomDivisor(random, shape.tensor_parallel)};
  encoder.frozen = shape.frozen || random.Chance(20);
  for (std::int32_t i = 0; i < shape.micro_batches; ++i) {
    if (!shape.skipping || !random.Chance(15)) encoder.micro_batches.push_back(i);
  }
  AddStages(random, shape, encoder);
  const std::int32_t blocks = shape.stages / encoder.plan.pipeline_parallel;
  const std::int32_t pipelines = blocks * (shape.tensor_parallel / encoder.plan.tensor_parallel);
  const std::size_t hops = static_cast<std::size_t>(blocks) * (encoder.plan.pipeline_parallel - 1);
  const std::int64_t most = shape.transfers && random.Chance(70) ? shape.encoder_scale / 2 : 0;
  encoder.forward_hop = Times(random, hops, most);
  encoder.backward_hop = Times(random, hops, most);
  encoder.to_llm = Times(random, pipelines, most);
  encoder.from_llm = Times(random, pipelines, most);
  return encoder;
}

}  // namespace

Problem RandomProblem(const RandomShape& shape) {
  Random random(shape.seed);
  Problem problem;
  problem.llm = RandomLlm(random, shape);
  problem.tensor_parallel = shape.tensor_parallel;
  for (std::int32_t k = 0; k < shape.encoders; ++k) {
    problem.encoders.push_back(RandomEncoder(random, shape, k));
    // Divisors of a power of two: the most blocks that an encoder needs is a multiple of the rest.
    problem.lanes = std::max(problem.lanes,
                             shape.tensor_parallel / problem.encoders.back().plan.tensor_parallel);
  }
  return problem;
}

namespace {

void Scale(Picoseconds& time, std::int64_t factor) { time = time * factor; }
void Scale(Interval& interval, std::int64_t factor) {
  interval = {interval.start * factor, interval.end * factor};
}
void Scale(EncoderSync::Bucket& bucket, std::int64_t factor) { Scale(bucket.duration, factor); }
void Scale(PlacedStage& stage, std::int64_t factor) {
  for (Picoseconds& start : stage.starts) Scale(start, factor);
}
void Scale(StageWork& work, std::int64_t factor) {
  for (WorkOp& op : work.ops) Scale(op.duration, factor);
  Scale(work.compute, factor);
  Scale(work.link, factor);
}
template <class T>
void Scale(std::vector<T>& all, std::int64_t factor) {
  for (T& one : all) Scale(one, factor);
}
void Scale(LlmStage& stage, std::int64_t factor) {
  for (Picoseconds* time :
       {&stage.first_start, &stage.last_end, &stage.compute, &stage.gradients_reduced}) {
    Scale(*time, factor);
  }
  Scale(stage.compute_idle, factor);
  Scale(stage.link_idle, factor);
}
void Scale(EncoderWork& encoder, std::int64_t factor) {
  Scale(encoder.forward, factor);
  Scale(encoder.backward, factor);
  for (auto* times :
       {&encoder.forward_hop, &encoder.backward_hop, &encoder.to_llm, &encoder.from_llm}) {
    Scale(*times, factor);
  }
  for (auto* by_stage : {&encoder.sync.gathers, &encoder.sync.reductions}) {
    for (auto& buckets : *by_stage) Scale(buckets, factor);
  }
}
void Scale(PlacedMicroBatch& placed, std::int64_t factor) {
  Scale(placed.forward, factor);
  Scale(placed.backward, factor);
  Scale(placed.forward_end, factor);
  Scale(placed.backward_start, factor);
}

}  // namespace

Problem Scaled(const Problem& problem, std::int64_t factor) {
  Problem scaled = problem;
  for (LlmStage& stage : scaled.llm.stages) Scale(stage, factor);
  for (auto* times : {&scaled.llm.forward_needed, &scaled.llm.backward_made}) {
    for (Picoseconds& time : *times) Scale(time, factor);
  }
  Scale(scaled.llm.after_reduction, factor);
  Scale(scaled.llm.step, factor);
  for (EncoderWork& encoder : scaled.encoders) Scale(encoder, factor);
  return scaled;
}

Result Scaled(const Result& result, std::int64_t factor) {
  Result scaled = result;
  for (PlacedEncoder& encoder : scaled.encoders) {
    for (PlacedPipeline& pipeline : encoder.pipelines) {
      for (PlacedMicroBatch& placed : pipeline.micro_batches) Scale(placed, factor);
    }
    for (auto* by_stage : {&encoder.gathers, &encoder.reductions}) {
      for (auto& intervals : *by_stage) {
        for (Interval& interval : intervals) Scale(interval, factor);
      }
    }
  }
  for (Picoseconds* time :
       {&scaled.delta_f, &scaled.delta_b, &scaled.latency, &scaled.coarse_latency}) {
    Scale(*time, factor);
  }
  return scaled;
}

}  // namespace optimus::bubble::testing
