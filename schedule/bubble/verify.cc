#include "schedule/bubble/verify.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/bubble/scheduler.h"
#include "schedule/bubble/verify_parts.h"

namespace optimus::bubble {
namespace verify {

std::string Describe(const PlacedWork& at) {
  return absl::StrCat("encoder ", at.encoder, " pipeline ", at.pipeline, " micro-batch ",
                      at.micro_batch->micro_batch, " stage ", at.stage,
                      at.forward ? " forward" : " backward");
}

std::string Describe(const PlacedWork& at, std::size_t op) {
  const WorkOp& work = at.work->ops[op];
  return absl::StrCat(Describe(at), " op ", op, " (",
                      work.resource == Resource::kCompute ? "kernel" : "collective", ", layer ",
                      work.layer, ")");
}

absl::Status ForEach(const Problem& problem, const Result& result,
                     absl::FunctionRef<absl::Status(const PlacedWork&)> visit) {
  PlacedWork at;
  for (at.encoder = 0; at.encoder < problem.encoders.size(); ++at.encoder) {
    at.encoder_work = &problem.encoders[at.encoder];
    const PlacedEncoder& placed = result.encoders[at.encoder];
    for (std::size_t j = 0; j < placed.pipelines.size(); ++j) {
      at.pipeline = static_cast<std::int32_t>(j);
      for (const PlacedMicroBatch& micro_batch : placed.pipelines[j].micro_batches) {
        at.micro_batch = &micro_batch;
        for (at.stage = 0; at.stage < at.encoder_work->plan.pipeline_parallel; ++at.stage) {
          at.place = PlaceOf(problem, *at.encoder_work, at.pipeline, at.stage);
          for (const bool forward : {true, false}) {
            at.forward = forward;
            at.work = &(forward ? at.encoder_work->forward : at.encoder_work->backward)[at.stage];
            at.placed = &(forward ? micro_batch.forward : micro_batch.backward)[at.stage];
            OPTIMUS_RETURN_IF_ERROR(visit(at));
          }
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status MustNotBeAfter(Picoseconds early, Picoseconds late,
                            absl::FunctionRef<std::string()> what) {
  if (early <= late) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what(), ": ", early.value(), " ps is after ", late.value(), " ps"));
}

absl::Span<const EncoderSync::Bucket> BucketsOf(
    const std::vector<std::vector<EncoderSync::Bucket>>& by_stage, std::int32_t stage) {
  if (by_stage.empty()) return {};
  return by_stage[stage];
}

bool Holds(const EncoderSync::Bucket& bucket, std::int16_t layer) {
  // The projector stands behind all layers.
  const auto position = [](std::int16_t of) {
    return of == ir::kProjectorLayer ? std::int32_t{1} << 16 : std::int32_t{of};
  };
  return position(bucket.first_layer) <= position(layer) &&
         position(layer) <= position(bucket.last_layer);
}

}  // namespace verify

absl::Status Verify(const Problem& problem, const Result& result) {
  OPTIMUS_RETURN_IF_ERROR(CheckProblem(problem));
  using Rule = absl::Status (*)(const Problem&, const Result&);
  constexpr std::array<Rule, 8> kRules = {
      verify::CheckShape, verify::CheckMap,      verify::CheckLanes, verify::CheckSlots,
      verify::CheckOrder, verify::CheckLlmEdges, verify::CheckSync,  verify::CheckTotals};
  for (const Rule rule : kRules) OPTIMUS_RETURN_IF_ERROR(rule(problem, result));
  return absl::OkStatus();
}

}  // namespace optimus::bubble
