#include "schedule/colocate/lane_emitter.h"

#include <algorithm>
#include <limits>

#include "schedule/colocate/messages.h"

namespace optimus::colocate {
namespace {

using bubble::EncoderWork;
using bubble::StageWork;

// The projector comes behind all layers.
int LayerOrder(std::int16_t layer) {
  return layer == ir::kProjectorLayer ? std::numeric_limits<std::int16_t>::max() : layer;
}

bool Holds(const bubble::EncoderSync::Bucket& bucket, std::int16_t layer) {
  return LayerOrder(bucket.first_layer) <= LayerOrder(layer) &&
         LayerOrder(layer) <= LayerOrder(bucket.last_layer);
}

ir::Tag TagOf(const EncoderWork& work, std::int32_t micro_batch, Phase phase) {
  ir::Tag tag;
  tag.module = static_cast<std::int16_t>(work.encoder + 1);
  tag.micro_batch = micro_batch;
  tag.phase = phase;
  return tag;
}

}  // namespace

ir::Program LaneEmitter::Emit() && {
  AddLlm();
  AddMessages();
  for (std::size_t e = 0; e < here_.size(); ++e) AddEncoder(e);
  for (std::size_t e = 0; e < here_.size(); ++e) AddSync(e);
  if (stage_ == 0) {
    ConnectLlmForward();
    SendGradients();
  }
  TakeTurnsOnLink();
  ConnectEnd();
  return std::move(program_).Finish(stage_, lane_);
}

// Sum of a tied table's gradients, gradient norm and optimizer: what comes after all reductions.
bool LaneEmitter::IsStepEnd(const ir::Operation& op) const {
  if (op.tag.phase == Phase::kOptimizer) return true;
  return op.stream == ir::Stream::kDataParallel && op.tag.phase == Phase::kGradientSync &&
         !in_.tables.groups[in_.tables.collectives[op.work].group].over_dp;
}

// Item i is operation i of the LLM's own program.
void LaneEmitter::AddLlm() {
  const ir::Program& llm = in_.llm_programs[stage_];
  llm_operations_ = llm.operations.size();
  if (stage_ == 0) {
    forward_begins_.resize(in_.tables.micro_batches);
    backward_ends_.resize(in_.tables.micro_batches);
  }
  for (std::size_t i = 0; i < llm.operations.size(); ++i) {
    ir::Operation op = llm.operations[i];
    Picoseconds start = in_.llm_spans[stage_][i].start + in_.result.delta_f;
    if (IsStepEnd(op)) start += in_.result.delta_b;
    if (op.message >= 0) op.message = op.message * in_.tables.lanes + lane_;
    if (op.tag.phase == Phase::kOptimizer) op.work = in_.optimizer_kernels[stage_];
    const Item item = program_.Add(op, start);
    for (const std::uint32_t before : llm.DependenciesOf(llm.operations[i])) {
      program_.Wait(item, before);
    }
    if (stage_ == 0) NoteSlotEnds(item);
  }
}

void LaneEmitter::NoteSlotEnds(Item item) {
  const ir::Operation& op = program_.operation(item);
  if (op.tag.chunk != 0 || op.tag.micro_batch < 0) return;
  if (op.stream != ir::Stream::kCompute && op.stream != ir::Stream::kTensorParallel) return;
  // They make nothing that an encoder waits for, and may run long after the data gradients.
  if (op.tag.phase == Phase::kWeightGradient) return;
  if (op.tag.phase == Phase::kForward) {
    Extend(forward_begins_[op.tag.micro_batch], item, /*last=*/false);
  } else {
    Extend(backward_ends_[op.tag.micro_batch], item, /*last=*/true);
  }
}

void LaneEmitter::Extend(Ends& ends, Item item, bool last) const {
  const bool compute = program_.operation(item).stream == ir::Stream::kCompute;
  std::optional<Item>& end = compute ? ends.compute : ends.communication;
  if (!end.has_value() || program_.Before(*end, item) == last) end = item;
}

// Collectives first: that is the order in which idle time is accounted.
void LaneEmitter::WaitForAll(Item item, const Ends& ends) {
  if (ends.communication.has_value()) program_.Wait(item, *ends.communication);
  if (ends.compute.has_value()) program_.Wait(item, *ends.compute);
}

void LaneEmitter::AddMessages() {
  for (std::size_t i = 0; i < in_.messages.size(); ++i) {
    const Message& message = in_.messages[i];
    const bool sends = message.from_stage == stage_ && message.from_lane == lane_;
    const bool receives = message.to_stage == stage_ && message.to_lane == lane_;
    if (!sends && !receives) continue;
    const bool forward = message.leg == Leg::kForwardHop || message.leg == Leg::kToLlm;
    ir::Operation op;
    op.kind = sends ? ir::OperationKind::kSend : ir::OperationKind::kReceive;
    op.stream = sends ? ir::Stream::kEncoderSend : ir::Stream::kEncoderReceive;
    op.tag = TagOf(in_.problem.encoders[message.encoder], message.micro_batch,
                   forward ? Phase::kForward : Phase::kBackward);
    op.work = message.transfer;
    op.peer_stage = sends ? message.to_stage : message.from_stage;
    op.peer_lane = sends ? message.to_lane : message.from_lane;
    if (op.peer_lane == lane_) op.peer_lane = -1;
    op.message = in_.first_message + static_cast<std::int32_t>(i);
    const Item item = program_.Add(op, sends ? message.start : message.arrival);
    const MessageKey key = {message.leg, message.encoder, message.pipeline, message.unit,
                            message.part};
    (sends ? sends_ : receives_)[key].push_back(item);
  }
}

const std::vector<LaneEmitter::Item>& LaneEmitter::Find(
    const std::map<MessageKey, std::vector<Item>>& in, const MessageKey& key) const {
  static const std::vector<Item> kNone;
  const auto found = in.find(key);
  return found == in.end() ? kNone : found->second;
}

void LaneEmitter::AddEncoder(std::size_t e) {
  const EncoderWork& encoder = in_.problem.encoders[e];
  EncoderHere& here = here_[e];
  const std::int32_t subgroups = in_.tables.world.tp / encoder.plan.tensor_parallel;
  const std::int32_t lanes_each = in_.tables.lanes / subgroups;
  here.encoder_stage = stage_ % encoder.plan.pipeline_parallel;
  here.pipeline = stage_ / encoder.plan.pipeline_parallel * subgroups + lane_ / lanes_each;
  const auto& units = in_.result.encoders[e].pipelines[here.pipeline].micro_batches;
  const std::int32_t p = here.encoder_stage;
  for (std::size_t k = 0; k < units.size(); ++k) {
    const StageWork& forward = encoder.forward[p];
    const Item begin = AddWork(e, forward, units[k].forward[p], units[k].micro_batch, here.forward);
    here.forward_begin.push_back(begin);
    for (std::size_t i = 0; i < forward.ops.size(); ++i) {
      WaitForInput(e, k, /*forward=*/true, begin + static_cast<Item>(i), forward.ops[i].input_part);
    }
    SendOutputs(e, k, /*forward=*/true, begin);
    const StageWork& backward = encoder.backward[p];
    if (backward.ops.empty()) continue;
    const Item back =
        AddWork(e, backward, units[k].backward[p], units[k].micro_batch, here.backward);
    for (std::size_t i = 0; i < backward.ops.size(); ++i) {
      WaitForInput(e, k, /*forward=*/false, back + static_cast<Item>(i),
                   backward.ops[i].input_part);
    }
    SendOutputs(e, k, /*forward=*/false, back);
  }
}

// Returns the item of the first operation; the others follow.
LaneEmitter::Item LaneEmitter::AddWork(std::size_t e, const StageWork& work,
                                       const bubble::PlacedStage& placed, std::int32_t micro_batch,
                                       std::vector<Item>& all) {
  const auto begin = static_cast<Item>(program_.size());
  for (std::size_t i = 0; i < work.ops.size(); ++i) {
    const bubble::WorkOp& in = work.ops[i];
    const bool compute = in.resource == bubble::Resource::kCompute;
    ir::Operation op;
    op.kind = compute ? ir::OperationKind::kKernel : ir::OperationKind::kCollective;
    op.stream = compute ? ir::Stream::kCompute : ir::Stream::kEncoderCommunication;
    op.tag = TagOf(in_.problem.encoders[e], micro_batch, in.phase);
    op.tag.layer = in.layer;
    op.tag.slice = in.layer == ir::kProjectorLayer ? std::int16_t{-1} : in.slice;
    op.work = in.work;
    const Item item = program_.Add(op, placed.starts[i]);
    all.push_back(item);
    for (std::uint32_t d = 0; d < in.dependency_count; ++d) {
      const std::uint32_t before = work.dependencies[in.first_dependency + d];
      // On one stream the order says it.
      if (work.ops[before].resource != in.resource) program_.Wait(item, begin + before);
    }
  }
  return begin;
}

void LaneEmitter::WaitForInput(std::size_t e, std::size_t unit, bool forward, Item item,
                               std::int16_t part) {
  if (part < 0) return;
  const EncoderWork& encoder = in_.problem.encoders[e];
  const EncoderHere& here = here_[e];
  const auto index = static_cast<std::int32_t>(e);
  const auto k = static_cast<std::int32_t>(unit);
  const bool from_llm = !forward && here.encoder_stage == encoder.plan.pipeline_parallel - 1;
  const Leg leg = forward ? Leg::kForwardHop : from_llm ? Leg::kFromLlm : Leg::kBackwardHop;
  for (const Item receive : Find(receives_, {leg, index, here.pipeline, k, part})) {
    program_.Wait(item, receive);
  }
  if (!from_llm || stage_ != 0) return;
  const std::int32_t micro_batch =
      in_.result.encoders[e].pipelines[here.pipeline].micro_batches[unit].micro_batch;
  for (const LanePair& pair : LanePairs(in_.tables, encoder.plan, here.pipeline)) {
    if (pair.encoder_lane != lane_ || pair.llm_lane != lane_) continue;
    WaitForAll(item, backward_ends_[micro_batch]);
  }
}

void LaneEmitter::SendOutputs(std::size_t e, std::size_t unit, bool forward, Item begin) {
  const EncoderWork& encoder = in_.problem.encoders[e];
  const EncoderHere& here = here_[e];
  const bool last = here.encoder_stage == encoder.plan.pipeline_parallel - 1;
  const Leg leg = !forward ? Leg::kBackwardHop : last ? Leg::kToLlm : Leg::kForwardHop;
  const StageWork& work = (forward ? encoder.forward : encoder.backward)[here.encoder_stage];
  for (std::size_t part = 0; part < work.outputs.size(); ++part) {
    for (const Item send :
         Find(sends_, {leg, static_cast<std::int32_t>(e), here.pipeline,
                       static_cast<std::int32_t>(unit), static_cast<std::int32_t>(part)})) {
      program_.Wait(send, begin + work.outputs[part]);
    }
  }
}

void LaneEmitter::AddSync(std::size_t e) {
  here_[e].gathers = AddBuckets(e, /*gather=*/true);
  here_[e].reductions = AddBuckets(e, /*gather=*/false);
  ConnectGathers(e);
  ConnectReductions(e);
}

std::vector<LaneEmitter::Item> LaneEmitter::AddBuckets(std::size_t e, bool gather) {
  const EncoderWork& encoder = in_.problem.encoders[e];
  const std::int32_t p = here_[e].encoder_stage;
  const auto& buckets = (gather ? encoder.sync.gathers : encoder.sync.reductions)[p];
  const bubble::PlacedEncoder& placed = in_.result.encoders[e];
  std::vector<Item> items;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    ir::Operation op;
    op.kind = ir::OperationKind::kCollective;
    op.stream = ir::Stream::kDataParallel;
    op.tag = TagOf(encoder, -1, gather ? Phase::kParameterSync : Phase::kGradientSync);
    // Several layers together are no layer's; the projector rides along with the last one.
    if (buckets.size() > 1) op.tag.layer = buckets[b].first_layer;
    op.work = buckets[b].work;
    items.push_back(program_.Add(op, (gather ? placed.gathers : placed.reductions)[p][b].start));
  }
  return items;
}

// A layer's first forward operation on either stream waits for its parameters.
void LaneEmitter::ConnectGathers(std::size_t e) {
  const EncoderHere& here = here_[e];
  if (here.gathers.empty()) return;
  const auto& buckets = in_.problem.encoders[e].sync.gathers[here.encoder_stage];
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    Ends first;
    for (const Item item : here.forward) {
      if (Holds(buckets[b], program_.operation(item).tag.layer)) Extend(first, item, false);
    }
    if (first.compute.has_value()) program_.WaitFirst(*first.compute, here.gathers[b]);
    if (first.communication.has_value()) program_.WaitFirst(*first.communication, here.gathers[b]);
  }
}

void LaneEmitter::ConnectReductions(std::size_t e) {
  const EncoderHere& here = here_[e];
  if (here.reductions.empty()) return;
  const auto& buckets = in_.problem.encoders[e].sync.reductions[here.encoder_stage];
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    Ends last;
    for (const Item item : here.backward) {
      if (Holds(buckets[b], program_.operation(item).tag.layer)) Extend(last, item, true);
    }
    WaitForAll(here.reductions[b], last);
  }
}

// Stage 0 only: chunk 0's forward of a micro-batch starts when all encoders' outputs are there.
void LaneEmitter::ConnectLlmForward() {
  for (std::size_t e = 0; e < here_.size(); ++e) {
    const EncoderWork& encoder = in_.problem.encoders[e];
    const auto& pipelines = in_.result.encoders[e].pipelines;
    for (std::size_t j = 0; j < pipelines.size(); ++j) {
      for (std::size_t k = 0; k < pipelines[j].micro_batches.size(); ++k) {
        const auto pipeline = static_cast<std::int32_t>(j);
        std::vector<Item> outputs = Find(receives_, {Leg::kToLlm, static_cast<std::int32_t>(e),
                                                     pipeline, static_cast<std::int32_t>(k), 0});
        if (outputs.empty()) {  // made on this very lane
          outputs.push_back(here_[e].forward_begin[k] + encoder.forward.back().outputs.front());
        }
        const Ends& begins = forward_begins_[pipelines[j].micro_batches[k].micro_batch];
        for (const std::optional<Item> begin : {begins.compute, begins.communication}) {
          if (begin.has_value()) program_.Wait(*begin, outputs.front());
        }
      }
    }
  }
}

void LaneEmitter::SendGradients() {
  for (const auto& [key, sends] : sends_) {
    if (std::get<Leg>(key) != Leg::kFromLlm) continue;
    for (const Item send : sends) {
      WaitForAll(send, backward_ends_[program_.operation(send).tag.micro_batch]);
    }
  }
}

// Collectives of the LLM and of encoders share a link but not a stream. The scheduler has given
// them turns; without these dependencies an encoder's collective that gets ready early would slow
// down the LLM's.
void LaneEmitter::TakeTurnsOnLink() {
  std::vector<Item> collectives;
  for (Item item = 0; item < program_.size(); ++item) {
    const ir::Stream stream = program_.operation(item).stream;
    if (stream == ir::Stream::kTensorParallel || stream == ir::Stream::kEncoderCommunication) {
      collectives.push_back(item);
    }
  }
  std::sort(collectives.begin(), collectives.end(),
            [this](Item a, Item b) { return program_.Before(a, b); });
  for (std::size_t i = 1; i < collectives.size(); ++i) {
    const Item before = collectives[i - 1];
    if (program_.operation(before).stream == program_.operation(collectives[i]).stream) continue;
    program_.Wait(collectives[i], before);
  }
}

// Nothing of the optimizer step starts before this lane's encoders are done and reduced.
void LaneEmitter::ConnectEnd() {
  Ends last;
  for (const EncoderHere& here : here_) {
    for (const auto* items : {&here.forward, &here.backward}) {
      for (const Item item : *items) Extend(last, item, /*last=*/true);
    }
  }
  for (Item item = 0; item < llm_operations_; ++item) {
    const ir::Operation& op = program_.operation(item);
    if (!IsStepEnd(op)) continue;
    if (op.tag.phase == Phase::kOptimizer) {
      for (const EncoderHere& here : here_) {
        if (!here.reductions.empty()) program_.WaitFirst(item, here.reductions.back());
      }
      if (last.communication.has_value()) program_.Wait(item, *last.communication);
    } else {
      WaitForAll(item, last);
    }
  }
}

}  // namespace optimus::colocate
