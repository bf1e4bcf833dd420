// Step times and memory of Megatron-LM with full recomputation, and with sequence parallelism and
// selective recomputation.

#include "base/status_macros.h"
#include "models/accounting.h"
#include "validation/published/data_set.h"
#include "validation/published/gpt.h"

namespace optimus::validation {
namespace {

using step::Plan;

constexpr std::int64_t kSequence = 2048;
constexpr std::int64_t kVocabulary = 51200;
constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;

absl::StatusOr<step::Experiment> ExperimentOf(const Row& row) {
  const GptShape shape = ShapeOf(row, kVocabulary, /*positions=*/kSequence);
  const Job job = JobOf(row, "a100-80gb", kSequence);
  OPTIMUS_RETURN_IF_ERROR(CheckJob(row, shape, job));
  step::Experiment experiment = MegatronJob(shape, job);
  Plan& plan = *experiment.mutable_plan();
  UseSoftwareOf2022(plan);
  plan.set_no_distributed_optimizer(true);
  plan.set_model_chunks(row.count("interleave"));
  if (plan.model_chunks() > 1) plan.set_schedule(Plan::INTERLEAVED);
  return experiment;
}

enum class Recipe { kPlain, kFullRecompute, kSelective };

step::Experiment With(step::Experiment experiment, Recipe recipe) {
  Plan& plan = *experiment.mutable_plan();
  plan.set_no_sequence_parallel(recipe != Recipe::kSelective);
  if (recipe == Recipe::kFullRecompute) plan.set_recompute(Plan::RECOMPUTE_FULL);
  if (recipe == Recipe::kSelective) plan.set_recompute(Plan::RECOMPUTE_SELECTIVE);
  return experiment;
}

double Gib(Bytes bytes) { return static_cast<double>(bytes.value()) / kBytesPerGib; }

absl::Status AddStep(const Row& row, const char* column, const step::Step& step,
                     Simulator& simulator, RowResult& result) {
  if (!row.has(column)) return absl::OkStatus();
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline timeline, simulator.Run(step));
  result.figures.push_back({column, "s", "step", row.number(column), ToSeconds(timeline.step)});
  return absl::OkStatus();
}

// Of the first stage, which keeps most micro-batches.
void AddActivations(const Row& row, const char* column, const step::Step& step, RowResult& result) {
  if (!row.has(column)) return;
  const double gib = Gib(step.memory.front().activations);
  result.figures.push_back({column, "GiB", "memory", row.number(column), gib});
}

// What the source counts: the parameters of the stage's layers, without embedding and head.
void AddState(const Row& row, const step::Step& step, RowResult& result) {
  constexpr char kColumn[] = "params_optimizer_gib";
  if (!row.has(kColumn)) return;
  const step::StageMemory& stage = step.memory.front();
  const models::ModelConfig& model = step.experiment.inline_llm();
  const int tp = step.experiment.plan().tensor_parallel();
  const double layers = static_cast<double>(models::LayerParametersPerGpu(model, tp)) *
                        model.num_layers() / step.experiment.plan().pipeline_parallel();
  const double all =
      layers + static_cast<double>(models::EmbeddingParametersPerGpu(model, tp)) +
      (step.memory.size() == 1 ? static_cast<double>(models::HeadParametersPerGpu(model, tp)) : 0);
  const double state = Gib(stage.parameters + stage.gradients + stage.optimizer_state);
  result.figures.push_back({kColumn, "GiB", "memory", row.number(kColumn), state * layers / all});
}

absl::StatusOr<RowResult> Evaluate(const Row& row, Simulator& simulator) {
  RowResult result;
  OPTIMUS_ASSIGN_OR_RETURN(const step::Experiment base, ExperimentOf(row));
  OPTIMUS_ASSIGN_OR_RETURN(const step::Step full,
                           simulator.Build(With(base, Recipe::kFullRecompute)));
  OPTIMUS_RETURN_IF_ERROR(AddStep(row, "full_recompute_s", full, simulator, result));
  OPTIMUS_ASSIGN_OR_RETURN(const step::Step selective,
                           simulator.Build(With(base, Recipe::kSelective)));
  OPTIMUS_RETURN_IF_ERROR(AddStep(row, "seqpar_selective_s", selective, simulator, result));
  OPTIMUS_ASSIGN_OR_RETURN(const step::Step plain, simulator.Build(With(base, Recipe::kPlain)));
  AddActivations(row, "activation_gib_none", plain, result);
  AddActivations(row, "activation_gib_seqpar_selective", selective, result);
  AddState(row, plain, result);
  return result;
}

Column Measured(const char* name) { return NumberColumn(name).OrEmpty(); }

}  // namespace

DataSet Korthikanti() {
  return {
      .name = "korthikanti",
      .title =
          "Step time and memory, full recomputation against sequence parallelism with "
          "selective recomputation, A100",
      .source =
          "Korthikanti et al., Reducing Activation Recomputation in Large Transformer "
          "Models, arXiv 2205.05198",
      .columns = {NumberColumn("params_b"), CountColumn("heads"), CountColumn("hidden"),
                  CountColumn("layers"), CountColumn("tp"), CountColumn("pp"),
                  CountColumn("interleave"), CountColumn("gpus"), CountColumn("global_batch"),
                  CountColumn("micro_batch"), Measured("full_recompute_s"),
                  Measured("seqpar_selective_s"), Measured("activation_gib_none"),
                  Measured("activation_gib_seqpar_selective"), Measured("params_optimizer_gib")},
      .conditions = {"params_b", "gpus"},
      .assumptions = {"profile a100-80gb; sequence length 2048, vocabulary 51200 (both published), "
                      "tied embeddings, learned positions",
                      kSoftwareOf2022,
                      "full recomputation runs without sequence parallelism; optimizer states are "
                      "not sharded",
                      "memory is that of the first pipeline stage; params_optimizer_gib counts the "
                      "parameters of layers alone, as the source's figures do"},
      .evaluate = &Evaluate};
}

}  // namespace optimus::validation
