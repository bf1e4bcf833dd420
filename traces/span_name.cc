#include "traces/span_name.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

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

// "fc1 fwd", but "fc1 wgrad" and not "fc1_wgrad wgrad".
std::string WorkAndPhase(const ir::Schedule& schedule, const ir::Operation& op) {
  const std::string& work = WorkName(schedule, op);
  const absl::string_view phase = Abbreviation(op.tag.phase);
  for (const char* ending : {"_dgrad", "_wgrad"}) {
    if (work != ending && absl::EndsWith(work, ending)) {
      return absl::StrCat(absl::StripSuffix(work, ending), " ", ending + 1);
    }
  }
  return work == phase ? work : absl::StrCat(work, " ", phase);
}

}  // namespace

std::string OperationName(const ir::Schedule& schedule, const ir::Operation& op) {
  std::string name = WorkAndPhase(schedule, op);
  AppendLayer(schedule, op.tag, name);
  if (op.tag.layer == -1 && op.tag.chunk >= 0) absl::StrAppend(&name, " c", op.tag.chunk);
  return name;
}

std::string SpanName(const ir::Schedule& schedule, const ir::Operation& op) {
  const ir::Tag& tag = op.tag;
  std::string name = OperationName(schedule, op);
  const bool moves_between_stages =
      op.kind == ir::OperationKind::kSend || op.kind == ir::OperationKind::kReceive;
  if (tag.micro_batch >= 0) absl::StrAppend(&name, " mb", tag.micro_batch);
  if (tag.slice >= 0) absl::StrAppend(&name, " s", tag.slice);
  if (moves_between_stages) {
    absl::StrAppend(&name, op.kind == ir::OperationKind::kSend ? " to" : " from", " stage ",
                    op.peer_stage);
    if (op.peer_lane >= 0) absl::StrAppend(&name, " lane ", op.peer_lane);
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
    case ir::Stream::kEncoderSend:
      return "encoder send";
    case ir::Stream::kEncoderReceive:
      return "encoder receive";
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
    case ir::Stream::kEncoderReceive:
      return 4;
    case ir::Stream::kEncoderSend:
      return 5;
    case ir::Stream::kForwardReceive:
      return 6;
    case ir::Stream::kForwardSend:
      return 7;
    case ir::Stream::kBackwardReceive:
      return 8;
    case ir::Stream::kBackwardSend:
      return 9;
    case ir::Stream::kDataParallel:
      return 10;
  }
  return ir::kStreamCount;
}

}  // namespace optimus::traces
