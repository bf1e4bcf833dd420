#include "executor/numerics/anatomy.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/numerics/supported.h"
#include "executor/runtime/runtime.h"
#include "models/accounting.h"
#include "models/layers.h"

namespace optimus::executor::numerics {
namespace {

bool HasKernel(const ir::Schedule& schedule, const std::string& name) {
  return std::any_of(schedule.kernels.begin(), schedule.kernels.end(),
                     [&](const Kernel& kernel) { return kernel.name == name; });
}

absl::Status Mismatch(const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("numerics: ", what, "; give the model that the schedule was made of"));
}

}  // namespace

RowRange PartOf(RowRange whole, std::int64_t index, std::int64_t count) {
  return {whole.begin + whole.size() * index / count,
          whole.begin + whole.size() * (index + 1) / count};
}

absl::StatusOr<Anatomy> Anatomy::Of(const ir::Schedule& schedule, const NumericsModel& model) {
  OPTIMUS_RETURN_IF_ERROR(CheckSupported(schedule));
  Anatomy anatomy;
  anatomy.schedule_ = &schedule;
  anatomy.model_ = &model;
  OPTIMUS_ASSIGN_OR_RETURN(anatomy.route_, Route::Of(schedule));
  for (TensorShape& tensor : TensorsOf(model)) {
    std::string name = tensor.name;
    anatomy.tensors_.emplace(std::move(name), std::move(tensor));
  }
  anatomy.ReadFlags();
  OPTIMUS_RETURN_IF_ERROR(anatomy.ReadModules());
  OPTIMUS_RETURN_IF_ERROR(anatomy.ReadItems());
  return anatomy;
}

absl::Status Anatomy::ReadModules() {
  const ir::Schedule& schedule = *schedule_;
  const NumericsModel& model = *model_;
  if (schedule.modules.size() != model.encoders.size() + 1) {
    return Mismatch(absl::StrCat("the schedule has ", schedule.modules.size(),
                                 " modules, the model has ", model.encoders.size() + 1));
  }
  const std::int64_t samples =
      std::int64_t{schedule.world.dp} * schedule.micro_batches * model.micro_batch;
  if (samples != model.global_batch) {
    return Mismatch(absl::StrCat("the schedule's micro-batches hold ", samples,
                                 " samples, the global batch is ", model.global_batch));
  }
  for (int m = 0; m < static_cast<int>(schedule.modules.size()); ++m) {
    OPTIMUS_RETURN_IF_ERROR(ReadModule(m));
  }
  const Dims& llm = modules_[0].dims;
  if (llm.vocabulary < 1) return Mismatch("the LLM has no vocabulary");
  if (llm.positions > 0 && llm.positions < model.sequence_length) {
    return absl::InvalidArgumentError(
        absl::StrCat("numerics: max_position_embeddings ", llm.positions, " of the LLM is below ",
                     "sequence_length ", model.sequence_length, "; raise it"));
  }
  return absl::OkStatus();
}

namespace {

void SetShape(const NumericsModel& model, int m, ModulePlan& plan) {
  plan.sequences = model.micro_batch;
  plan.length = model.sequence_length;
  plan.slice_sequences = plan.sequences;
  if (m == 0) return;
  const NumericsEncoder& encoder = model.encoders[m - 1];
  plan.sequences *= encoder.sequences_per_sample;
  plan.length = encoder.sequence_length;
  plan.slice_sequences =
      encoder.sequences_per_slice > 0 ? encoder.sequences_per_slice : plan.sequences;
  plan.frozen = encoder.frozen;
  plan.skipped.insert(encoder.micro_batches_without_input.begin(),
                      encoder.micro_batches_without_input.end());
}

absl::Status CheckShape(const models::ModelConfig& config, const ModulePlan& plan,
                        bool sequence_parallel) {
  models::LayerShape shape;
  shape.sequences = plan.slice_sequences;
  shape.sequence_length = plan.length;
  shape.tensor_parallel = plan.tp;
  shape.sequence_parallel = sequence_parallel;
  OPTIMUS_RETURN_IF_ERROR(models::ValidateShape(config, shape));
  if (plan.sequences >= 1 && plan.sequences % plan.slice_sequences == 0) return absl::OkStatus();
  return Mismatch(absl::StrCat(plan.dims.name, ": ", plan.sequences, " sequences in slices of ",
                               plan.slice_sequences));
}

}  // namespace

absl::Status Anatomy::ReadModule(int m) {
  const ir::ModuleInfo& info = schedule_->modules[m];
  ModulePlan plan;
  plan.dims = DimsOf(*model_)[m];
  if (info.layers != plan.dims.layers) {
    return Mismatch(absl::StrCat(plan.dims.name, ": the schedule has ", info.layers,
                                 " layers, the model has ", plan.dims.layers));
  }
  SetShape(*model_, m, plan);
  if (plan.frozen != info.frozen) return Mismatch(plan.dims.name + ": frozen in one of the two");
  const std::vector<std::int32_t>& skipped = info.skipped_micro_batches;
  if (plan.skipped != std::set<std::int32_t>(skipped.begin(), skipped.end())) {
    return Mismatch(plan.dims.name + ": not the same micro-batches are without input");
  }
  plan.own_pipelines = info.pipelines > 0;
  plan.tp = info.tensor_parallel > 0 ? info.tensor_parallel : schedule_->world.tp;
  plan.subgroups = schedule_->world.tp / plan.tp;
  plan.data_parallel =
      schedule_->world.dp * std::max(info.pipelines, 1) * (info.both_directions ? 2 : 1);
  OPTIMUS_RETURN_IF_ERROR(
      CheckShape(m == 0 ? model_->llm : model_->encoders[m - 1].model, plan, sequence_parallel_));
  modules_.push_back(std::move(plan));
  return absl::OkStatus();
}

void Anatomy::ReadFlags() {
  for (const ir::Collective& collective : schedule_->collectives) {
    sequence_parallel_ |= absl::EndsWith(collective.work.name, "_reduce_scatter") &&
                          !schedule_->groups[collective.group].over_dp;
  }
  fused_ = !HasKernel(*schedule_, "mlp_residual");
  for (const ir::Program& program : schedule_->programs) {
    for (const ir::Operation& op : program.operations) {
      if (op.kind != ir::OperationKind::kKernel || op.tag.phase != Phase::kRecompute) continue;
      const std::string& name = schedule_->kernels[op.work].name;
      full_recompute_ |= name == "norm1";
      selective_recompute_ |= name == "attention" || name == "qk";
    }
  }
  selective_recompute_ &= !full_recompute_;
}

absl::Status Anatomy::ReadItems() {
  for (int m = 1; m < modules(); ++m) {
    if (modules_[m].own_pipelines) continue;
    for (std::int64_t l = 0; l < modules_[m].dims.layers; ++l) {
      stack_.push_back({static_cast<std::int16_t>(m), static_cast<std::int16_t>(l), 0});
    }
    stack_.push_back({static_cast<std::int16_t>(m), ir::kProjectorLayer, 0});
  }
  stack_.push_back({ir::kLlmModule, ir::kEmbeddingLayer, 0});
  for (std::int64_t l = 0; l < modules_[0].dims.layers; ++l) {
    stack_.push_back({ir::kLlmModule, static_cast<std::int16_t>(l), 0});
  }
  stack_.push_back({ir::kLlmModule, ir::kHeadLayer, 0});
  last_item_.assign(route_.virtual_stages(), -1);
  for (const ir::Program& program : schedule_->programs) {
    std::set<Item>& items = items_.emplace_back();
    for (const ir::Operation& op : program.operations) {
      if (op.kind != ir::OperationKind::kKernel || op.tag.phase != Phase::kForward) continue;
      if (op.tag.module < 0 || op.tag.module >= modules()) {
        return absl::UnimplementedError(
            absl::StrCat("numerics: ",
                         ir::Describe(*schedule_, program,
                                      static_cast<std::uint32_t>(&op - program.operations.data())),
                         " belongs to no module: schedules of measured stages hold no model"));
      }
      const Item item = {op.tag.module, op.tag.layer, op.tag.chunk};
      items.insert(item);
      if (modules_[item.module].own_pipelines) continue;
      const int v = VirtualStageOf(program.stage, std::max<int>(item.chunk, 0));
      last_item_[v] = std::max(last_item_[v], OrderOf(item));
    }
  }
  ShareEncoderItems();
  return absl::OkStatus();
}

// An encoder pipeline that no micro-batch passes holds the layers of its stages all the same: those
// that the other pipelines have there.
void Anatomy::ShareEncoderItems() {
  for (int m = 1; m < modules(); ++m) {
    const ModulePlan& module = modules_[m];
    if (!module.own_pipelines) continue;
    const int stages = schedule_->world.pp * module.subgroups / schedule_->modules[m].pipelines;
    std::map<int, std::set<Item>> by_stage;
    for (std::size_t p = 0; p < items_.size(); ++p) {
      for (const Item& item : items_[p]) {
        if (item.module == m) by_stage[schedule_->programs[p].stage % stages].insert(item);
      }
    }
    for (std::size_t p = 0; p < items_.size(); ++p) {
      const std::set<Item>& all = by_stage[schedule_->programs[p].stage % stages];
      items_[p].insert(all.begin(), all.end());
    }
  }
}

int Anatomy::OrderOf(const Item& item) const {
  const auto found = std::find(stack_.begin(), stack_.end(), Item{item.module, item.layer, 0});
  return found == stack_.end() ? -1 : static_cast<int>(found - stack_.begin());
}

Place Anatomy::PlaceOf(int rank) const {
  const RankPlace at = executor::PlaceOf(*schedule_, rank);
  return {
      rank, at.stage, at.d, at.t, ir::LaneOf(*schedule_, at.t), &schedule_->programs[at.program]};
}

const std::set<Item>& Anatomy::ItemsOf(const ir::Program& program) const {
  return items_[ir::ProgramIndex(*schedule_, program.stage, program.lane)];
}

absl::StatusOr<Crossing> Anatomy::CrossingAt(int boundary) const {
  if (boundary < 0 || boundary + 1 >= static_cast<int>(last_item_.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("numerics: no boundary behind virtual stage ", boundary));
  }
  int last = -1;
  for (int v = 0; v <= boundary; ++v) last = std::max(last, last_item_[v]);
  Crossing crossing;
  bool embedded = false;
  for (int i = 0; i <= last; ++i) {
    const Item& item = stack_[i];
    embedded |= item.layer == ir::kEmbeddingLayer;
    if (item.layer == ir::kProjectorLayer) crossing.projected.push_back(item.module - 1);
  }
  if (embedded) crossing.projected.clear();
  if (last < 0) return crossing;
  const Item& item = stack_[last];
  if (item.layer >= 0 || item.layer == ir::kEmbeddingLayer) {
    crossing.module = item.module;
    crossing.layer = static_cast<std::int16_t>(item.layer >= 0 ? item.layer + 1 : 0);
  }
  return crossing;
}

RowRange Anatomy::ForwardRows(int m, int u, int piece) const {
  const ModulePlan& plan = modules_[m];
  return PartOf(PartOf({0, plan.tokens()}, u, plan.tp), piece, plan.subgroups);
}

RowRange Anatomy::BackwardRows(int m, int u, int piece) const {
  if (sequence_parallel_) return ForwardRows(m, u, piece);
  return PartOf({0, modules_[m].tokens()}, piece, modules_[m].subgroups);
}

}  // namespace optimus::executor::numerics
