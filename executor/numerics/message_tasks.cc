// What messages carry. A message names its micro-batch but not its content: that follows from where
// it crosses the pipeline, or, for an encoder's own pipeline, from what its send waits for.

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/numerics/task.h"

namespace optimus::executor::numerics {
namespace {

// One slot of a message.
struct Part {
  SlotKey key;
  std::size_t size = 0;
};

class MessageCompiler {
 public:
  explicit MessageCompiler(Compiled& compiled)
      : compiled_(compiled),
        context_(compiled.context),
        op_(compiled.op),
        tag_(compiled.op.tag),
        anatomy_(context_.anatomy) {}

  absl::Status Compile() {
    absl::Status status = tag_.module == ir::kNoModule ? FromBoundary() : FromEncoderPipeline();
    if (!status.ok()) return status;
    if (parts_.empty()) return compiled_.Unknown();
    if (sends()) {
      Send();
    } else {
      Receive();
    }
    return absl::OkStatus();
  }

 private:
  bool sends() const { return op_.kind == ir::OperationKind::kSend; }
  bool forward() const { return tag_.phase == Phase::kForward; }

  void AddHidden(std::int16_t module, std::int64_t layer, int slice) {
    const ModulePlan& plan = anatomy_.module(module);
    const What what = forward() ? What::kHidden : What::kGradHidden;
    parts_.push_back(
        {{what, module, static_cast<std::int16_t>(layer), static_cast<std::int16_t>(slice),
          tag_.micro_batch},
         static_cast<std::size_t>(anatomy_.Local(plan, plan.slice_tokens()) * plan.dims.hidden)});
  }
  void AddAllSlices(std::int16_t module, std::int64_t layer) {
    for (int i = 0; i < anatomy_.module(module).slices(); ++i) AddHidden(module, layer, i);
  }
  // `u`: rank of the encoder's tensor-parallel group.
  void AddPiece(std::int16_t module, int u, int piece) {
    const RowRange rows = forward() ? anatomy_.ForwardRows(module, u, piece)
                                    : anatomy_.BackwardRows(module, u, piece);
    const What what = forward() ? What::kProjected : What::kGradProjected;
    parts_.push_back({{what, module, -1, static_cast<std::int16_t>(piece), tag_.micro_batch},
                      static_cast<std::size_t>(rows.size() * anatomy_.module(0).dims.hidden)});
  }

  // Between virtual stages of the pipeline.
  absl::Status FromBoundary() {
    const bool in_front = forward() != sends();  // the boundary in front of this virtual stage
    const int stage = anatomy_.VirtualStageOf(context_.place.stage, tag_.chunk);
    absl::StatusOr<Crossing> crossing = anatomy_.CrossingAt(in_front ? stage - 1 : stage);
    if (!crossing.ok()) return crossing.status();
    if (crossing->module >= 0 && (forward() || !anatomy_.module(crossing->module).frozen)) {
      AddAllSlices(crossing->module, crossing->layer);
    }
    for (const int k : crossing->projected) {
      AddPiece(static_cast<std::int16_t>(k + 1), context_.place.t, 0);
    }
    return absl::OkStatus();
  }

  // The send of this message: where, and what it waits for.
  struct SendSide {
    const ir::Program* program = nullptr;
    const ir::Operation* op = nullptr;
    const ir::Operation* cause = nullptr;
  };
  SendSide FindSend() const {
    SendSide side;
    const ir::Schedule& schedule = context_.schedule();
    side.program =
        sends() ? context_.place.program
                : &schedule.programs[ir::PeerProgram(schedule, *context_.place.program, op_)];
    for (const ir::Operation& op : side.program->operations) {
      if (op.kind == ir::OperationKind::kSend && op.message == op_.message) side.op = &op;
    }
    if (side.op != nullptr) side.cause = CauseOf(*side.program, *side.op);
    return side;
  }
  static const ir::Operation* CauseOf(const ir::Program& program, const ir::Operation& send) {
    const auto causes = program.DependenciesOf(send);
    return causes.empty() ? nullptr : &program.operations[causes.back()];
  }

  static bool LeavesEncoder(const ir::Operation& cause) {
    return cause.tag.layer == ir::kProjectorLayer && cause.tag.phase == Phase::kForward;
  }
  static bool LeavesLlm(const ir::Operation& cause) { return cause.tag.module == ir::kLlmModule; }

  absl::Status FromEncoderPipeline() {
    const SendSide side = FindSend();
    if (side.cause == nullptr) return compiled_.Unknown();
    const int lanes_of_encoder = anatomy_.module(tag_.module).subgroups;
    const int width = ir::LaneWidth(context_.schedule());
    const int peer_lane = side.op->peer_lane < 0 ? side.program->lane : side.op->peer_lane;
    if (LeavesEncoder(*side.cause) || LeavesLlm(*side.cause)) {
      const int llm_lane = LeavesLlm(*side.cause) ? side.program->lane : peer_lane;
      // Rank i of a lane talks to rank i of the other.
      const int u = llm_lane / lanes_of_encoder * width + context_.place.t % width;
      AddPiece(tag_.module, u, llm_lane % lanes_of_encoder);
      return absl::OkStatus();
    }
    if (side.cause->tag.layer < 0) return compiled_.Unknown();
    const std::int64_t layer = side.cause->tag.layer + (forward() ? 1 : 0);
    if (HopsOf(*side.program, *side.op) == 1) {
      AddAllSlices(tag_.module, layer);
    } else {
      AddHidden(tag_.module, layer, std::max<std::int16_t>(side.cause->tag.slice, 0));
    }
    return absl::OkStatus();
  }

  // Sends between encoder stages that share a micro-batch and a direction: one for each slice, or
  // one for all.
  static int HopsOf(const ir::Program& program, const ir::Operation& send) {
    int hops = 0;
    for (const ir::Operation& op : program.operations) {
      if (op.kind != ir::OperationKind::kSend || !(op.tag == send.tag)) continue;
      const ir::Operation* cause = CauseOf(program, op);
      if (cause != nullptr && !LeavesEncoder(*cause) && !LeavesLlm(*cause)) ++hops;
    }
    return hops;
  }

  std::size_t Size() const {
    std::size_t size = 0;
    for (const Part& part : parts_) size += part.size;
    return size;
  }
  std::vector<Slot*> SlotsOfParts() {
    std::vector<Slot*> slots;
    for (const Part& part : parts_) slots.push_back(context_.slots.At(part.key));
    return slots;
  }

  void Send() {
    Task& task = compiled_.task;
    task.needs = task.drops = SlotsOfParts();
    task.drops_early = true;
    task.input_size = Size();
    task.pack = [slots = task.needs](Floats& input) {
      input.clear();
      for (const Slot* slot : slots) {
        input.insert(input.end(), slot->data.begin(), slot->data.end());
      }
    };
  }

  void Receive() {
    Task& task = compiled_.task;
    task.makes = SlotsOfParts();
    task.output_size = Size();
    task.unpack = [slots = task.makes, parts = parts_](Floats& output) {
      auto begin = output.begin();
      for (std::size_t i = 0; i < slots.size(); ++i) {
        const auto end = begin + static_cast<std::ptrdiff_t>(parts[i].size);
        slots[i]->Put(Floats(begin, end));
        begin = end;
      }
    };
  }

  Compiled& compiled_;
  const Context& context_;
  const ir::Operation& op_;
  const ir::Tag tag_;
  const Anatomy& anatomy_;
  std::vector<Part> parts_;
};

}  // namespace

absl::Status CompileMessage(Compiled& compiled) { return MessageCompiler(compiled).Compile(); }

}  // namespace optimus::executor::numerics
