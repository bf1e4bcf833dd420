#pragma once
// All messages of the encoders in one step, with both ends.

#include <cstdint>
#include <vector>

#include "schedule/bubble/problem.h"
#include "schedule/bubble/result.h"
#include "schedule/colocate/encoder_work.h"
#include "schedule/ir/schedule.h"

namespace optimus::colocate {

enum class Leg : std::uint8_t {
  kForwardHop,   // encoder stage p to p + 1
  kToLlm,        // last encoder stage to LLM stage 0
  kFromLlm,      // and the gradient back
  kBackwardHop,  // encoder stage p to p - 1
};

struct Message {
  Leg leg = Leg::kForwardHop;
  std::int32_t encoder = 0;      // index into Problem::encoders
  std::int32_t pipeline = 0;     // encoder pipeline
  std::int32_t unit = 0;         // index into PlacedPipeline::micro_batches
  std::int32_t micro_batch = 0;  // of the LLM
  std::int32_t part = 0;
  std::int32_t from_stage = 0, from_lane = 0, to_stage = 0, to_lane = 0;
  std::int32_t transfer = -1;  // index into Schedule::transfers
  Picoseconds start, arrival;  // predicted
};

// An index into the result, plus an offset, makes a message id. Interns transfers into `schedule`.
// None where both ends are the same lane of the same stage, and none that a frozen encoder does not
// need.
std::vector<Message> MessagesOf(const EncoderContext& context, const bubble::Problem& problem,
                                const bubble::Result& result, ir::Schedule& schedule);

}  // namespace optimus::colocate
