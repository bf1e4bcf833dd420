#pragma once
// What one operation does with real data, worked out before the first step: what it needs, what it
// makes, what it lets go.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "executor/numerics/anatomy.h"
#include "executor/numerics/holdings.h"
#include "executor/numerics/slots.h"

namespace optimus::executor::numerics {

struct Task {
  std::vector<Slot*> needs, makes, drops;
  // Slots that it would drop if no weight gradient behind it needed them (keep.h).
  std::vector<Slot*> keeps;
  // Slots that it writes although they may be there already (recomputation).
  std::vector<Slot*> remakes;
  std::vector<Parameter*> reads;    // their values must be there
  std::vector<Parameter*> adds_to;  // their gradients get a contribution

  std::function<void()> body;  // kKernel

  // kCollective, kSend, kReceive. Data is copied into `input` when the operation starts and out of
  // `output` when it ends, so that nobody else's timing shows in a buffer under way.
  std::size_t input_size = 0, output_size = 0;
  std::function<void(Floats&)> pack;    // `input` has its size
  std::function<void(Floats&)> unpack;  // may move from `output`
  bool drops_early = false;  // at the start: what is sent may come back before the send has ended
  // Gradients that it uses, with the contributions that they must have had by then since they were
  // last reduced.
  std::vector<std::pair<Parameter*, int>> contributions;
  bool final_gradients = false;    // those gradients must be reduced too (gradient norm, optimizer)
  std::vector<Parameter*> brings;  // values that an all-gather makes present
  std::vector<Parameter*> frees;   // values that are let go after it (FSDP)
  Floats input, output;
};

// What compiling an operation works with.
struct Context {
  const Anatomy& anatomy;
  Place place;
  Slots& slots;
  Parameters& parameters;
  double* loss = nullptr;  // of the step, on this rank
  const ir::Schedule& schedule() const { return anatomy.schedule(); }
  const NumericsModel& model() const { return anatomy.model(); }
};

// One operation being compiled.
struct Compiled {
  const Context& context;
  std::uint32_t id = 0;
  const ir::Operation& op;
  bool repeated = false;  // the same kernel has been there for this tag (residual_grad_add)
  Task task;

  absl::Status Unknown() const {
    return absl::UnimplementedError(
        absl::StrCat("numerics: ", Name(), ": no real data for this operation"));
  }
  std::string Name() const {
    return absl::StrCat(ir::Describe(context.schedule(), *context.place.program, id),
                        " (operation ", id, ")");
  }
  // The GEMM that the Schedule has must be the one that the model has.
  absl::Status ExpectGemm(std::int64_t m, std::int64_t n, std::int64_t k) const {
    const GemmShape& is = context.schedule().kernels[op.work].gemm;
    if (is == GemmShape{m, n, k}) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "numerics: ", Name(), " is ", is.m, " x ", is.n, " x ", is.k, ", the model's is ", m, " x ",
        n, " x ", k, "; give the model that the schedule was made of"));
  }
  absl::Status ExpectAttention(const AttentionDims& dims) const {
    const AttentionShape& is = context.schedule().kernels[op.work].attention;
    if (is.sequences == dims.sequences && is.sequence_length == dims.length &&
        is.heads == dims.heads && is.kv_heads == dims.kv_heads && is.head_dim == dims.head_dim &&
        is.causal == dims.causal) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "numerics: ", Name(), " is not the attention of the model; give the model that the ",
        "schedule was made of"));
  }
};

// One compiler for each kind of tag. They fill compiled.task.
absl::Status CompileLayer(Compiled& compiled);  // forward, recomputation; calls the next
absl::Status CompileLayerBackward(Compiled& compiled);
absl::Status CompileEmbedding(Compiled& compiled);
absl::Status CompileHead(Compiled& compiled);
absl::Status CompileProjector(Compiled& compiled);
absl::Status CompileMessage(Compiled& compiled);
absl::Status CompileSync(Compiled& compiled);  // parameters, gradients, optimizer

}  // namespace optimus::executor::numerics
