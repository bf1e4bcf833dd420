#pragma once
// Data-parallel communication of the encoders: their gathers at the start of the step, their
// reductions at its end, and the end of the step that follows. Network cards work in order: all
// gathers of the encoders (in their order) come before the LLM's, all their reductions after it.
// A bucket is one collective of all blocks, so it starts on all of them at once.

#include <cstdint>
#include <vector>

#include "schedule/bubble/problem.h"
#include "schedule/bubble/result.h"

namespace optimus::bubble {

// The bucket that holds `layer` (the projector counts as the last layer); -1 where none does, as
// for the layers of a frozen encoder: they are neither gathered nor reduced.
std::int32_t BucketOf(const std::vector<EncoderSync::Bucket>& buckets, std::int16_t layer);

// Gathers of all encoders, by encoder, encoder stage and bucket, from the start of the step.
std::vector<std::vector<std::vector<Interval>>> PlaceGathers(const Problem& problem);

// The LLM starts at least so much later than alone: all its gathers wait for the encoders'.
Picoseconds LeastShift(const Problem& problem);

// When every network card is done with the LLM's own gradients, by LLM stage. Times of the LLM
// alone.
std::vector<Picoseconds> LlmReductionEnds(const Problem& problem);

// Places the reductions of one encoder after what `card_free` (by LLM stage) says is already there,
// and moves `card_free` on. ready[p][b]: every pipeline has ended its last backward of the layers
// of bucket b of encoder stage p. Times of the LLM alone.
std::vector<std::vector<Interval>> PlaceReductions(
    const EncoderWork& encoder, const std::vector<std::vector<Picoseconds>>& ready,
    std::vector<Picoseconds>& card_free);

// The end of the step so far. Times of the LLM alone.
struct Tail {
  std::vector<Picoseconds> card_free;  // by LLM stage: its network card has reduced all gradients
  Picoseconds end;                     // all reductions have ended, all encoders are done
};
Tail LlmTail(const Problem& problem);

// The tail cannot end before this, even if the gradients of `encoder` were there from the start.
Picoseconds LeastEnd(const EncoderWork& encoder, const Tail& tail);

// Places the reductions of one encoder after those that are there. A bucket starts when every
// pipeline has ended its last backward of the bucket's layers. `shift`: how much later than the LLM
// alone the times of `placed` are; the reductions get it too.
void AddToTail(const EncoderWork& encoder, Picoseconds shift, PlacedEncoder& placed, Tail& tail);

// From splits, starts of operations, and delta_f of `result`: its gathers and reductions, delta_b
// and latency. The optimizer runs when all reductions have ended and all encoders are done.
void CompleteStep(const Problem& problem, Result& result);

}  // namespace optimus::bubble
