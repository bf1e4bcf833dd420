#include "schedule/colocate/emit_messages.h"

#include "schedule/colocate/messages.h"
#include "schedule/planner/encoder_stages.h"
#include "schedule/step/work_tables.h"

namespace optimus::colocate {
namespace {

// The messages of one encoder.
class MessageWriter {
 public:
  MessageWriter(const EncoderContext& context, const bubble::Problem& problem,
                const bubble::Result& result, std::int32_t encoder, ir::Schedule& schedule,
                std::vector<Message>& messages)
      : problem_(problem),
        work_(problem.encoders[encoder]),
        placed_(result.encoders[encoder]),
        delta_f_(result.delta_f),
        encoder_(encoder),
        schedule_(schedule),
        messages_(messages) {
    output_ = Intern("encoder_output", OutputBytes(context.stack));
    gradient_ = Intern("encoder_output_gradients", OutputBytes(context.stack));
    if (work_.plan.pipeline_parallel == 1) return;
    const step::Module module =
        planner::UnderPlan(context.stack.modules[work_.encoder + 1], work_.plan);
    const int parts = context.scheduler == step::Optimus::LIST ? module.slices : 1;
    const Bytes hop = HopBytes(context.stack, module, parts);
    forward_hop_ = Intern("encoder_activations", hop);
    backward_hop_ = Intern("encoder_gradients", hop);
  }

  void Write() {
    for (std::size_t j = 0; j < placed_.pipelines.size(); ++j) {
      pipeline_ = static_cast<std::int32_t>(j);
      const auto& units = placed_.pipelines[j].micro_batches;
      for (std::size_t k = 0; k < units.size(); ++k) {
        unit_ = static_cast<std::int32_t>(k);
        WriteUnit(units[k]);
      }
    }
  }

 private:
  std::int32_t Intern(const char* name, Bytes bytes) {
    return step::Intern(schedule_.transfers, ir::Transfer{name, bytes, Picoseconds(0)});
  }
  std::int32_t stages() const { return work_.plan.pipeline_parallel; }

  Message Make(Leg leg, const bubble::PlacedMicroBatch& unit, std::int32_t transfer) const {
    Message message;
    message.leg = leg;
    message.encoder = encoder_;
    message.pipeline = pipeline_;
    message.unit = unit_;
    message.micro_batch = unit.micro_batch;
    message.transfer = transfer;
    return message;
  }

  void WriteUnit(const bubble::PlacedMicroBatch& unit) {
    for (std::int32_t p = 0; p + 1 < stages(); ++p) {
      AddHop(Leg::kForwardHop, unit, p, p + 1, work_.forward[p], unit.forward[p]);
    }
    AddToLlm(unit);
    AddFromLlm(unit);
    for (std::int32_t p = stages() - 1; p > 0; --p) {
      if (work_.backward[p - 1].ops.empty()) continue;  // frozen
      AddHop(Leg::kBackwardHop, unit, p, p - 1, work_.backward[p], unit.backward[p]);
    }
  }

  // Between encoder stages, on every lane of the pipeline, one part after the other.
  void AddHop(Leg leg, const bubble::PlacedMicroBatch& unit, std::int32_t from, std::int32_t to,
              const bubble::StageWork& work, const bubble::PlacedStage& placed) {
    const bool forward = leg == Leg::kForwardHop;
    const bubble::PipelinePlace source = bubble::PlaceOf(problem_, work_, pipeline_, from);
    const bubble::PipelinePlace target = bubble::PlaceOf(problem_, work_, pipeline_, to);
    const std::int32_t block = source.stage / stages();
    const Picoseconds time = forward ? work_.forward_hop[block * (stages() - 1) + from]
                                     : work_.backward_hop[block * (stages() - 1) + to];
    for (std::size_t part = 0; part < work.outputs.size(); ++part) {
      const std::uint32_t op = work.outputs[part];
      for (std::int32_t lane = 0; lane < source.lane_count; ++lane) {
        Message message = Make(leg, unit, forward ? forward_hop_ : backward_hop_);
        message.part = static_cast<std::int32_t>(part);
        message.from_stage = source.stage;
        message.to_stage = target.stage;
        message.from_lane = message.to_lane = source.first_lane + lane;
        message.start = placed.starts[op] + work.ops[op].duration;
        message.arrival = message.start + time;
        messages_.push_back(message);
      }
    }
  }

  void AddToLlm(const bubble::PlacedMicroBatch& unit) {
    const std::int32_t stage = LastStageOf(work_.plan, schedule_.world, pipeline_);
    for (const LanePair& pair : LanePairs(schedule_, work_.plan, pipeline_)) {
      if (stage == 0 && pair.encoder_lane == pair.llm_lane) continue;
      Message message = Make(Leg::kToLlm, unit, output_);
      message.from_stage = stage;
      message.from_lane = pair.encoder_lane;
      message.to_stage = 0;
      message.to_lane = pair.llm_lane;
      message.start = unit.forward_end;
      message.arrival = unit.forward_end + work_.to_llm[pipeline_];
      messages_.push_back(message);
    }
  }

  void AddFromLlm(const bubble::PlacedMicroBatch& unit) {
    const std::int32_t stage = LastStageOf(work_.plan, schedule_.world, pipeline_);
    for (const LanePair& pair : LanePairs(schedule_, work_.plan, pipeline_)) {
      if (stage == 0 && pair.encoder_lane == pair.llm_lane) continue;
      Message message = Make(Leg::kFromLlm, unit, gradient_);
      message.from_stage = 0;
      message.from_lane = pair.llm_lane;
      message.to_stage = stage;
      message.to_lane = pair.encoder_lane;
      message.start = problem_.llm.backward_made[unit.micro_batch] + delta_f_;
      message.arrival = message.start + work_.from_llm[pipeline_];
      messages_.push_back(message);
    }
  }

  const bubble::Problem& problem_;
  const bubble::EncoderWork& work_;
  const bubble::PlacedEncoder& placed_;
  Picoseconds delta_f_;
  std::int32_t encoder_;
  ir::Schedule& schedule_;
  std::vector<Message>& messages_;
  std::int32_t output_ = -1, gradient_ = -1, forward_hop_ = -1, backward_hop_ = -1;
  std::int32_t pipeline_ = 0, unit_ = 0;
};

}  // namespace

std::vector<Message> MessagesOf(const EncoderContext& context, const bubble::Problem& problem,
                                const bubble::Result& result, ir::Schedule& schedule) {
  std::vector<Message> messages;
  for (std::size_t e = 0; e < problem.encoders.size(); ++e) {
    MessageWriter(context, problem, result, static_cast<std::int32_t>(e), schedule, messages)
        .Write();
  }
  return messages;
}

}  // namespace optimus::colocate
