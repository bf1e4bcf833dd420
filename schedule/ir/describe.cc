// Names for people: streams, kinds and operations.

#include "absl/strings/str_cat.h"
#include "schedule/ir/schedule.h"

namespace optimus::ir {
namespace {

// Describe() is used to report broken Schedules, so an index may be anything.
template <class Table>
bool Has(const Table& table, std::int64_t index) {
  return index >= 0 && index < static_cast<std::int64_t>(table.size());
}

void AppendLayer(std::int16_t layer, std::string& out) {
  switch (layer) {
    case -1:
      return;
    case kEmbeddingLayer:
      out += "embedding ";
      return;
    case kHeadLayer:
      out += "head ";
      return;
    case kProjectorLayer:
      out += "projector ";
      return;
    default:
      absl::StrAppend(&out, "layer ", layer, " ");
  }
}

void AppendTag(const Schedule& schedule, const Tag& tag, std::string& out) {
  if (Has(schedule.modules, tag.module)) {
    absl::StrAppend(&out, schedule.modules[tag.module].name, " ");
  } else if (tag.module != kNoModule) {
    absl::StrAppend(&out, "module ", tag.module, " ");
  }
  AppendLayer(tag.layer, out);
  if (tag.micro_batch != -1) absl::StrAppend(&out, "micro-batch ", tag.micro_batch, " ");
  if (tag.slice != -1) absl::StrAppend(&out, "slice ", tag.slice, " ");
  if (tag.chunk != -1) absl::StrAppend(&out, "chunk ", tag.chunk, " ");
  out += ToString(tag.phase);
}

std::string WorkName(const Schedule& schedule, const Operation& op) {
  std::string name;
  switch (op.kind) {
    case OperationKind::kKernel:
      if (Has(schedule.kernels, op.work)) name = schedule.kernels[op.work].name;
      break;
    case OperationKind::kCollective:
      if (!Has(schedule.collectives, op.work)) break;
      name = schedule.collectives[op.work].work.name;
      if (name.empty()) name = ToString(schedule.collectives[op.work].work.kind);
      break;
    case OperationKind::kSend:
    case OperationKind::kReceive:
      if (Has(schedule.transfers, op.work)) name = schedule.transfers[op.work].name;
      break;
  }
  return name;
}

}  // namespace

const char* ToString(Stream stream) {
  switch (stream) {
    case Stream::kCompute:
      return "compute";
    case Stream::kTensorParallel:
      return "tensor_parallel";
    case Stream::kEncoderCommunication:
      return "encoder_communication";
    case Stream::kForwardSend:
      return "forward_send";
    case Stream::kForwardReceive:
      return "forward_receive";
    case Stream::kBackwardSend:
      return "backward_send";
    case Stream::kBackwardReceive:
      return "backward_receive";
    case Stream::kDataParallel:
      return "data_parallel";
    case Stream::kEncoderSend:
      return "encoder_send";
    case Stream::kEncoderReceive:
      return "encoder_receive";
  }
  return "invalid";
}

const char* ToString(OperationKind kind) {
  switch (kind) {
    case OperationKind::kKernel:
      return "kernel";
    case OperationKind::kCollective:
      return "collective";
    case OperationKind::kSend:
      return "send";
    case OperationKind::kReceive:
      return "receive";
  }
  return "invalid";
}

std::string Describe(const Schedule& schedule, const Program& program, std::uint32_t op) {
  if (!Has(program.operations, op)) return "no such operation";
  const Operation& operation = program.operations[op];
  std::string out;
  AppendTag(schedule, operation.tag, out);
  const bool message =
      operation.kind == OperationKind::kSend || operation.kind == OperationKind::kReceive;
  if (message) absl::StrAppend(&out, " ", ToString(operation.kind));
  const std::string work = WorkName(schedule, operation);
  if (!work.empty()) absl::StrAppend(&out, " ", work);
  if (message) {
    const char* preposition =
        operation.kind == OperationKind::kSend ? " to stage " : " from stage ";
    absl::StrAppend(&out, preposition, operation.peer_stage);
    if (operation.peer_lane != -1) absl::StrAppend(&out, " lane ", operation.peer_lane);
  }
  return out;
}

}  // namespace optimus::ir
