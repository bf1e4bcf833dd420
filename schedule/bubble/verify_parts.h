#pragma once
// The rules that Verify checks, one function each. Internal to schedule/bubble. Written from
// problem.h and result.h alone: shares no code with the schedulers.

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "schedule/bubble/problem.h"
#include "schedule/bubble/result.h"

namespace optimus::bubble::verify {

// One micro-batch on one encoder stage in one direction: what is to be done, and when it is.
struct PlacedWork {
  std::size_t encoder = 0;
  std::int32_t pipeline = 0;
  std::int32_t stage = 0;  // of the encoder
  bool forward = true;
  const EncoderWork* encoder_work = nullptr;
  const PlacedMicroBatch* micro_batch = nullptr;
  const StageWork* work = nullptr;
  const PlacedStage* placed = nullptr;
  PipelinePlace place;
  Picoseconds start(std::size_t op) const { return placed->starts[op]; }
  Picoseconds end(std::size_t op) const { return placed->starts[op] + work->ops[op].duration; }
};

// "encoder 0 pipeline 2 micro-batch 5 stage 1 backward".
std::string Describe(const PlacedWork& at);
// The same and the op: "... backward op 7 (kernel, layer 3)".
std::string Describe(const PlacedWork& at, std::size_t op);

// Every one of them, encoder by encoder; stops at the first error. `result` must have its shape.
absl::Status ForEach(const Problem& problem, const Result& result,
                     absl::FunctionRef<absl::Status(const PlacedWork&)> visit);

// INVALID_ARGUMENT "<what>: <a> <relation> <b>" with both times, if `early` is later than `late`.
absl::Status MustNotBeAfter(Picoseconds early, Picoseconds late,
                            absl::FunctionRef<std::string()> what);

// The buckets of an encoder stage; none where the encoder has no data-parallel communication.
absl::Span<const EncoderSync::Bucket> BucketsOf(
    const std::vector<std::vector<EncoderSync::Bucket>>& by_stage, std::int32_t stage);
bool Holds(const EncoderSync::Bucket& bucket, std::int16_t layer);

// Everything has the size that the problem gives it: each op of each micro-batch has one start.
absl::Status CheckShape(const Problem& problem, const Result& result);
// Forward and backward together: every micro-batch with input is on one pipeline, once.
absl::Status CheckMap(const Problem& problem, const Result& result);
// No two ops on one resource of one lane at the same time.
absl::Status CheckLanes(const Problem& problem, const Result& result);
// Kernels outside the LLM's kernels, collectives outside its tensor-parallel collectives.
absl::Status CheckSlots(const Problem& problem, const Result& result);
// Order within a chain, dependencies, inputs of stages, forward before backward.
absl::Status CheckOrder(const Problem& problem, const Result& result);
// The LLM has its input in time and the encoder its gradient; EF and EB are what they say.
absl::Status CheckLlmEdges(const Problem& problem, const Result& result);
// Gathers and reductions of the encoders on the network cards.
absl::Status CheckSync(const Problem& problem, const Result& result);
// Delays, latency, bounds, efficiencies.
absl::Status CheckTotals(const Problem& problem, const Result& result);

}  // namespace optimus::bubble::verify
