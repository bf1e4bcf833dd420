#pragma once
// What a Schedule says about the model that it was made of: which layers are where, who shares
// whose work, what a message between two virtual stages has to carry. Read from the operations
// alone; nothing of how Schedules are made is known here.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/numerics/numerics.h"
#include "executor/numerics/route.h"
#include "executor/numerics/tensors.h"
#include "schedule/ir/schedule.h"

namespace optimus::executor::numerics {

// Rows of a tensor of activations: [begin, end).
struct RowRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
// Part `index` of `count` nearly equal parts of a range.
RowRange PartOf(RowRange whole, std::int64_t index, std::int64_t count);

// A module as the Schedule runs it.
struct ModulePlan {
  Dims dims;
  bool frozen = false;
  bool own_pipelines = false;        // encoder pipelines beside the LLM's
  int tp = 1;                        // its tensor parallelism
  int subgroups = 1;                 // encoder pipelines side by side on the LLM's tp ranks
  int data_parallel = 1;             // ranks that hold the same shard of it
  std::int64_t length = 0;           // tokens of a sequence
  std::int64_t sequences = 0;        // of a micro-batch
  std::int64_t slice_sequences = 0;  // of one pass of a layer
  std::set<std::int32_t> skipped;    // micro-batches without input
  int slices() const { return static_cast<int>(sequences / slice_sequences); }
  std::int64_t tokens() const { return sequences * length; }
  std::int64_t slice_tokens() const { return slice_sequences * length; }
};

// One of the model's parts on a rank; layer: of the module, or ir::kEmbeddingLayer ...
struct Item {
  std::int16_t module = 0, layer = 0, chunk = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14
  friend auto operator<=>(const Item&, const Item&) = default;
};

// Coordinates of a rank.
struct Place {
  int rank = 0, stage = 0, d = 0, t = 0, lane = 0;
  const ir::Program* program = nullptr;
};

// What crosses the boundary behind a virtual stage: an unfinished module's activations and the
// outputs of finished encoders (and the gradients of both on their way back).
struct Crossing {
  std::int16_t module = -1;    // -1: none
  std::int16_t layer = 0;      // in front of this layer of it
  std::vector<int> projected;  // encoders (from 0) whose output passes
};

class Anatomy {
 public:
  // Schedule and model must outlive it. INVALID_ARGUMENT where the two do not fit, UNIMPLEMENTED
  // for what cannot be done with real data.
  static absl::StatusOr<Anatomy> Of(const ir::Schedule& schedule, const NumericsModel& model);

  const ir::Schedule& schedule() const { return *schedule_; }
  const NumericsModel& model() const { return *model_; }
  const ModulePlan& module(int m) const { return modules_[m]; }
  int modules() const { return static_cast<int>(modules_.size()); }
  bool sequence_parallel() const { return sequence_parallel_; }
  bool fused() const { return fused_; }
  bool full_recompute() const { return full_recompute_; }
  bool selective_recompute() const { return selective_recompute_; }
  // Tokens that norms and residuals of a module see here, of `tokens` of them.
  std::int64_t Local(const ModulePlan& module, std::int64_t tokens) const {
    return sequence_parallel_ ? tokens / module.tp : tokens;
  }
  const TensorShape& tensor(const std::string& name) const { return tensors_.at(name); }
  bool HasTensor(const std::string& name) const { return tensors_.contains(name); }
  const std::map<std::string, TensorShape>& tensors() const { return tensors_; }

  Place PlaceOf(int rank) const;
  // The items of a program, those of its forward.
  const std::set<Item>& ItemsOf(const ir::Program& program) const;
  // Of a chunk of the pipeline that the LLM is on.
  int VirtualStageOf(int stage, int chunk) const { return route_.VirtualStageOf({stage, chunk}); }
  // `boundary` behind this virtual stage.
  absl::StatusOr<Crossing> CrossingAt(int boundary) const;

  // First sample of a micro-batch.
  std::int64_t FirstSample(int d, std::int32_t micro_batch) const {
    return (std::int64_t{d} * schedule_->micro_batches + micro_batch) * model_->micro_batch;
  }

  // Rows (tokens of a whole micro-batch) of encoder module m behind its projector that rank `u` of
  // its tensor-parallel group exchanges with the `piece`-th of the LLM's lanes that it serves.
  // Forward: every row once over u and piece, so that the sum over the LLM's ranks has each once.
  // Backward: what u needs; without sequence parallelism that is every row, over the pieces.
  RowRange ForwardRows(int m, int u, int piece) const;
  RowRange BackwardRows(int m, int u, int piece) const;

 private:
  absl::Status ReadModules();
  absl::Status ReadModule(int m);
  void ReadFlags();
  absl::Status ReadItems();
  void ShareEncoderItems();
  int OrderOf(const Item& item) const;

  const ir::Schedule* schedule_ = nullptr;
  const NumericsModel* model_ = nullptr;
  Route route_;
  std::vector<ModulePlan> modules_;
  std::map<std::string, TensorShape> tensors_;
  std::vector<std::set<Item>> items_;  // by program
  std::vector<Item> stack_;            // in the order in which a micro-batch passes them
  std::vector<int> last_item_;         // by virtual stage of the pipeline: index into stack_
  bool sequence_parallel_ = false, fused_ = true, full_recompute_ = false,
       selective_recompute_ = false;
};

}  // namespace optimus::executor::numerics
