// The fields of every operation by themselves.

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/ir/validate_parts.h"

namespace optimus::ir::internal {
namespace {

struct Place {
  const Schedule& schedule;
  const Program& program;
  OperationRef ref;
};

absl::Status Error(const Place& place, absl::string_view field, const std::string& what,
                   const std::string& hint) {
  return OperationError(place.schedule, place.ref, field, what, hint);
}

bool Fits(Stream stream, OperationKind kind) {
  switch (stream) {
    case Stream::kCompute:
      return kind == OperationKind::kKernel;
    case Stream::kTensorParallel:
    case Stream::kEncoderCommunication:
    case Stream::kDataParallel:
      return kind == OperationKind::kCollective;
    case Stream::kForwardSend:
    case Stream::kBackwardSend:
    case Stream::kEncoderSend:
      return kind == OperationKind::kSend;
    case Stream::kForwardReceive:
    case Stream::kBackwardReceive:
    case Stream::kEncoderReceive:
      return kind == OperationKind::kReceive;
  }
  return false;
}

absl::Status CheckStream(const Place& place, const Operation& op) {
  if (op.kind > OperationKind::kReceive) {
    return Error(place, "kind", absl::StrCat(static_cast<int>(op.kind), " is no operation kind"),
                 "see OperationKind in schedule/ir/schedule.h");
  }
  if (static_cast<int>(op.stream) >= kStreamCount) {
    return Error(place, "stream", absl::StrCat(static_cast<int>(op.stream), " is no stream"),
                 "see Stream in schedule/ir/schedule.h");
  }
  if (Fits(op.stream, op.kind)) return absl::OkStatus();
  return Error(
      place, "stream",
      absl::StrCat("a ", ToString(op.kind), " cannot be on the ", ToString(op.stream), " stream"),
      "kernels go on compute, collectives on a communication stream, sends and receives "
      "on their own streams");
}

absl::Status CheckTag(const Place& place, const Tag& tag) {
  const Schedule& schedule = place.schedule;
  const auto modules = static_cast<std::int64_t>(schedule.modules.size());
  if (tag.phase > Phase::kOptimizer) {
    return Error(place, "tag.phase", absl::StrCat(static_cast<int>(tag.phase), " is no phase"),
                 "see base/phase.h");
  }
  const bool declared = schedule.micro_batches > 0;
  if (tag.micro_batch < -1 || (declared && tag.micro_batch >= schedule.micro_batches)) {
    return Error(place, "tag.micro_batch", absl::StrCat(tag.micro_batch, " is out of range"),
                 absl::StrCat("the schedule has ", schedule.micro_batches, " micro-batches"));
  }
  if (tag.chunk < -1 || tag.slice < -1 || tag.layer < kProjectorLayer) {
    return Error(place,
                 tag.chunk < -1   ? "tag.chunk"
                 : tag.slice < -1 ? "tag.slice"
                                  : "tag.layer",
                 "is out of range", "-1 where it does not apply");
  }
  if (tag.module == kNoModule || modules == 0) return absl::OkStatus();
  if (tag.module < 0 || tag.module >= modules) {
    return Error(place, "tag.module", absl::StrCat(tag.module, " is out of range"),
                 absl::StrCat("the schedule has ", modules, " modules"));
  }
  const ModuleInfo& module = schedule.modules[tag.module];
  if (tag.layer < module.layers) return absl::OkStatus();
  return Error(place, "tag.layer", absl::StrCat(tag.layer, " is out of range"),
               absl::StrCat("module '", module.name, "' has ", module.layers, " layers"));
}

absl::Status CheckWork(const Place& place, const Operation& op) {
  const Schedule& schedule = place.schedule;
  std::size_t size = schedule.transfers.size();
  const char* table = "transfers";
  if (op.kind == OperationKind::kKernel) {
    size = schedule.kernels.size();
    table = "kernels";
  } else if (op.kind == OperationKind::kCollective) {
    size = schedule.collectives.size();
    table = "collectives";
  }
  if (op.work >= 0 && static_cast<std::size_t>(op.work) < size) return absl::OkStatus();
  return Error(place, "work", absl::StrCat(op.work, " is out of range"),
               absl::StrCat("the schedule has ", size, " ", table));
}

absl::Status CheckPeer(const Place& place, const Operation& op) {
  const bool message = op.kind == OperationKind::kSend || op.kind == OperationKind::kReceive;
  if (!message) return absl::OkStatus();
  if (op.peer_stage < 0 || op.peer_stage >= place.schedule.world.pp) {
    return Error(place, "peer_stage", absl::StrCat(op.peer_stage, " is out of range"),
                 absl::StrCat("there are ", place.schedule.world.pp, " stages"));
  }
  const std::int32_t lanes = place.schedule.lanes;
  if (op.peer_lane < -1 || op.peer_lane >= lanes) {
    return Error(place, "peer_lane", absl::StrCat(op.peer_lane, " is out of range"),
                 absl::StrCat("there are ", lanes, lanes == 1 ? " lane" : " lanes"));
  }
  if (PeerProgram(place.schedule, place.program, op) == place.ref.program) {
    return Error(place, "peer_stage",
                 lanes == 1 ? "is its own stage" : "with peer_lane is its own stage and lane",
                 lanes == 1 ? "what stays on a stage is a dependency, not a message"
                            : "what stays on a stage and lane is a dependency, not a message");
  }
  if (op.message >= 0) return absl::OkStatus();
  return Error(place, "message", absl::StrCat(op.message, " is no message id"), "0 or above");
}

absl::Status CheckDependencies(const Place& place, const Operation& op) {
  const std::size_t count = place.program.operations.size();
  const std::uint64_t end = std::uint64_t{op.first_dependency} + op.dependency_count;
  if (end > place.program.dependencies.size()) {
    return Error(
        place, "first_dependency",
        absl::StrCat("range [", op.first_dependency, ", ", end, ") is out of range"),
        absl::StrCat("the program has ", place.program.dependencies.size(), " dependencies"));
  }
  for (const std::uint32_t id : place.program.DependenciesOf(op)) {
    if (id >= count) {
      return Error(place, "dependencies", absl::StrCat("operation ", id, " does not exist"),
                   absl::StrCat("the program has ", count, " operations"));
    }
    if (id == place.ref.operation) {
      return Error(place, "dependencies", "it depends on itself", "leave that entry out");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOperation(const Place& place, const Operation& op) {
  OPTIMUS_RETURN_IF_ERROR(CheckStream(place, op));
  OPTIMUS_RETURN_IF_ERROR(CheckTag(place, op.tag));
  OPTIMUS_RETURN_IF_ERROR(CheckWork(place, op));
  OPTIMUS_RETURN_IF_ERROR(CheckPeer(place, op));
  return CheckDependencies(place, op);
}

}  // namespace

absl::Status CheckOperations(const Schedule& schedule) {
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    const Program& program = schedule.programs[p];
    for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
      const Place place{schedule, program, {static_cast<std::int32_t>(p), id}};
      OPTIMUS_RETURN_IF_ERROR(CheckOperation(place, program.operations[id]));
    }
  }
  return absl::OkStatus();
}

}  // namespace optimus::ir::internal
