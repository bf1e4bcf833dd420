#include "schedule/bubble/sync.h"

#include <algorithm>
#include <limits>

#include "schedule/ir/schedule.h"

namespace optimus::bubble {
namespace {

// Order of layers in which the projector comes last.
int LayerOrder(std::int16_t layer) {
  return layer == ir::kProjectorLayer ? std::numeric_limits<std::int16_t>::max() : layer;
}

const std::vector<EncoderSync::Bucket>* BucketsAt(
    const std::vector<std::vector<EncoderSync::Bucket>>& by_stage, std::size_t stage) {
  return stage < by_stage.size() ? &by_stage[stage] : nullptr;
}

// Buckets one after the other on the cards of all blocks that hold this encoder stage.
std::vector<Interval> PlaceBuckets(const std::vector<EncoderSync::Bucket>& buckets,
                                   const std::vector<Picoseconds>& ready, std::size_t stage,
                                   std::size_t stages, std::vector<Picoseconds>& card_free) {
  std::vector<Interval> placed;
  if (buckets.empty()) return placed;
  Picoseconds free = card_free[stage];
  for (std::size_t d = stage; d < card_free.size(); d += stages) {
    free = std::max(free, card_free[d]);
  }
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const Picoseconds start = std::max(free, ready.empty() ? free : ready[b]);
    free = start + buckets[b].duration;
    placed.push_back({start, free});
  }
  for (std::size_t d = stage; d < card_free.size(); d += stages) card_free[d] = free;
  return placed;
}

// When the last backward of each bucket's layers has ended, and when anything of this encoder has.
struct BackwardEnds {
  std::vector<std::vector<Picoseconds>> ready;  // by encoder stage and bucket
  Picoseconds last;
};

void AddStage(const StageWork& work, const std::vector<Picoseconds>& starts, Picoseconds shift,
              const std::vector<std::int32_t>& bucket_of_op, std::vector<Picoseconds>& ready,
              Picoseconds& last) {
  for (std::size_t i = 0; i < work.ops.size(); ++i) {
    const Picoseconds end = starts[i] + work.ops[i].duration - shift;
    last = std::max(last, end);
    if (bucket_of_op[i] >= 0) {
      auto& bucket = ready[static_cast<std::size_t>(bucket_of_op[i])];
      bucket = std::max(bucket, end);
    }
  }
}

std::vector<std::int32_t> BucketsOfOps(const StageWork& work,
                                       const std::vector<EncoderSync::Bucket>* buckets) {
  std::vector<std::int32_t> of_op(work.ops.size(), -1);
  for (std::size_t i = 0; buckets != nullptr && i < of_op.size(); ++i) {
    of_op[i] = i > 0 && work.ops[i].layer == work.ops[i - 1].layer
                   ? of_op[i - 1]
                   : BucketOf(*buckets, work.ops[i].layer);
  }
  return of_op;
}

BackwardEnds EndsOf(const EncoderWork& encoder, const PlacedEncoder& placed, Picoseconds shift) {
  BackwardEnds ends;
  for (std::size_t p = 0; p < encoder.backward.size(); ++p) {
    const auto* buckets = BucketsAt(encoder.sync.reductions, p);
    ends.ready.emplace_back(buckets == nullptr ? 0 : buckets->size());
    const auto of_op = BucketsOfOps(encoder.backward[p], buckets);
    for (const PlacedPipeline& pipeline : placed.pipelines) {
      for (const PlacedMicroBatch& unit : pipeline.micro_batches) {
        AddStage(encoder.backward[p], unit.backward[p].starts, shift, of_op, ends.ready[p],
                 ends.last);
      }
    }
  }
  return ends;
}

}  // namespace

std::int32_t BucketOf(const std::vector<EncoderSync::Bucket>& buckets, std::int16_t layer) {
  const int order = LayerOrder(layer);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    if (LayerOrder(buckets[b].first_layer) <= order && order <= LayerOrder(buckets[b].last_layer)) {
      return static_cast<std::int32_t>(b);
    }
  }
  return -1;
}

std::vector<std::vector<std::vector<Interval>>> PlaceGathers(const Problem& problem) {
  std::vector<std::vector<std::vector<Interval>>> all;
  std::vector<Picoseconds> card_free(problem.llm.stages.size());
  for (const EncoderWork& encoder : problem.encoders) {
    const auto stages = static_cast<std::size_t>(encoder.plan.pipeline_parallel);
    auto& placed = all.emplace_back(stages);
    for (std::size_t p = 0; p < encoder.sync.gathers.size(); ++p) {
      placed[p] = PlaceBuckets(encoder.sync.gathers[p], {}, p, stages, card_free);
    }
  }
  return all;
}

Picoseconds LeastShift(const Problem& problem) {
  Picoseconds shift;
  for (const auto& encoder : PlaceGathers(problem)) {
    for (const std::vector<Interval>& stage : encoder) {
      if (!stage.empty()) shift = std::max(shift, stage.back().end);
    }
  }
  return shift;
}

std::vector<Picoseconds> LlmReductionEnds(const Problem& problem) {
  std::vector<Picoseconds> ends;
  for (const LlmStage& stage : problem.llm.stages) ends.push_back(stage.gradients_reduced);
  return ends;
}

std::vector<std::vector<Interval>> PlaceReductions(
    const EncoderWork& encoder, const std::vector<std::vector<Picoseconds>>& ready,
    std::vector<Picoseconds>& card_free) {
  const auto stages = static_cast<std::size_t>(encoder.plan.pipeline_parallel);
  std::vector<std::vector<Interval>> placed(stages);
  for (std::size_t p = 0; p < encoder.sync.reductions.size(); ++p) {
    placed[p] = PlaceBuckets(encoder.sync.reductions[p], ready[p], p, stages, card_free);
  }
  return placed;
}

Tail LlmTail(const Problem& problem) {
  Tail tail;
  tail.card_free = LlmReductionEnds(problem);
  for (const Picoseconds free : tail.card_free) tail.end = std::max(tail.end, free);
  return tail;
}

Picoseconds LeastEnd(const EncoderWork& encoder, const Tail& tail) {
  std::vector<std::vector<Picoseconds>> ready;
  for (const auto& buckets : encoder.sync.reductions) ready.emplace_back(buckets.size());
  std::vector<Picoseconds> card_free = tail.card_free;
  PlaceReductions(encoder, ready, card_free);
  return std::max(tail.end, *std::max_element(card_free.begin(), card_free.end()));
}

void AddToTail(const EncoderWork& encoder, Picoseconds shift, PlacedEncoder& placed, Tail& tail) {
  const BackwardEnds ends = EndsOf(encoder, placed, shift);
  placed.reductions = PlaceReductions(encoder, ends.ready, tail.card_free);
  tail.end = std::max(tail.end, ends.last);
  for (const Picoseconds free : tail.card_free) tail.end = std::max(tail.end, free);
  for (auto& stage : placed.reductions) {
    for (Interval& bucket : stage) bucket = {bucket.start + shift, bucket.end + shift};
  }
}

void CompleteStep(const Problem& problem, Result& result) {
  const auto gathers = PlaceGathers(problem);
  Tail tail = LlmTail(problem);
  for (std::size_t e = 0; e < problem.encoders.size(); ++e) {
    result.encoders[e].gathers = gathers[e];
    AddToTail(problem.encoders[e], result.delta_f, result.encoders[e], tail);
  }
  result.delta_b = tail.end + problem.llm.after_reduction - problem.llm.step;
  result.latency = problem.llm.step + result.delta_f + result.delta_b;
}

}  // namespace optimus::bubble
