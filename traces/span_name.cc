#include "traces/span_name.h"

#include "absl/strings/str_cat.h"

namespace optimus::traces {
namespace {

const char* Abbreviation(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "fwd";
    case Phase::kRecompute:
      return "recompute";
    case Phase::kBackward:
      return "bwd";
    case Phase::kWeightGradient:
      return "wgrad";
    case Phase::kParameterSync:
      return "param sync";
    case Phase::kGradientSync:
      return "grad sync";
    case Phase::kOptimizer:
      return "optimizer";
  }
  return "invalid";
}

const std::string& WorkName(const ir::Schedule& schedule, const ir::Operation& op) {
  switch (op.kind) {
    case ir::OperationKind::kKernel:
      return schedule.kernels[op.work].name;
    case ir::OperationKind::kCollective:
      return schedule.collectives[op.work].work.name;
    case ir::OperationKind::kSend:
    case ir::OperationKind::kReceive:
      break;
  }
  return schedule.transfers[op.work].name;
}

void AppendLayer(const ir::Schedule& schedule, const ir::Tag& tag, std::string& name) {
  if (tag.module > ir::kLlmModule) {
    absl::StrAppend(&name, " enc");
    if (schedule.modules.size() > 2) absl::StrAppend(&name, tag.module);
  }
  switch (tag.layer) {
    case ir::kEmbeddingLayer:
      absl::StrAppend(&name, " embedding");
      break;
    case ir::kHeadLayer:
      absl::StrAppend(&name, " head");
      break;
    case ir::kProjectorLayer:
      absl::StrAppend(&name, " projector");
      break;
    default:
      if (tag.layer >= 0) absl::StrAppend(&name, " L", tag.layer);
  }
}

}  // namespace

std::string SpanName(const ir::Schedule& schedule, const ir::Operation& op) {
  const ir::Tag& tag = op.tag;
  std::string name = WorkName(schedule, op);
  if (const char* phase = Abbreviation(tag.phase); name != phase)
    absl::StrAppend(&name, " ", phase);
  AppendLayer(schedule, tag, name);
  const bool moves_between_stages =
      op.kind == ir::OperationKind::kSend || op.kind == ir::OperationKind::kReceive;
  if (tag.layer == -1 && tag.chunk >= 0) absl::StrAppend(&name, " c", tag.chunk);
  if (tag.micro_batch >= 0) absl::StrAppend(&name, " mb", tag.micro_batch);
  if (tag.slice >= 0) absl::StrAppend(&name, " s", tag.slice);
  if (moves_between_stages) {
    absl::StrAppend(&name, op.kind == ir::OperationKind::kSend ? " to" : " from", " stage ",
                    op.peer_stage);
  }
  return name;
}

std::string SpanCategory(const ir::Schedule& schedule, const ir::Operation& op) {
  switch (op.kind) {
    case ir::OperationKind::kKernel:
      return ToString(schedule.kernels[op.work].kind);
    case ir::OperationKind::kCollective:
      return ToString(schedule.collectives[op.work].work.kind);
    case ir::OperationKind::kSend:
      return "send";
    case ir::OperationKind::kReceive:
      return "receive";
  }
  return "invalid";
}

const char* TrackName(ir::Stream stream) {
  switch (stream) {
    case ir::Stream::kCompute:
      return "compute";
    case ir::Stream::kTensorParallel:
      return "tensor parallel";
    case ir::Stream::kEncoderCommunication:
      return "encoder communication";
    case ir::Stream::kForwardSend:
      return "forward send";
    case ir::Stream::kForwardReceive:
      return "forward receive";
    case ir::Stream::kBackwardSend:
      return "backward send";
    case ir::Stream::kBackwardReceive:
      return "backward receive";
    case ir::Stream::kDataParallel:
      return "data parallel";
  }
  return "invalid";
}

int TrackOrder(ir::Stream stream) {
  switch (stream) {
    case ir::Stream::kCompute:
      return 0;  // 1 is the bubbles' track
    case ir::Stream::kTensorParallel:
      return 2;
    case ir::Stream::kEncoderCommunication:
      return 3;
    case ir::Stream::kForwardReceive:
      return 4;
    case ir::Stream::kForwardSend:
      return 5;
    case ir::Stream::kBackwardReceive:
      return 6;
    case ir::Stream::kBackwardSend:
      return 7;
    case ir::Stream::kDataParallel:
      return 8;
  }
  return 9;
}

}  // namespace optimus::traces
