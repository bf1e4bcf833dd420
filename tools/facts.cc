#include "tools/facts.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "schedule/step/check_schedule.h"
#include "tools/text_pieces.h"

namespace optimus::tools {
namespace {

using step::Plan;

// A model of the zoo is named, another one is a file: its name without folder and ending.
std::string ModelName(const std::string& name_or_path) {
  const std::filesystem::path path(name_or_path);
  return path.extension() == ".textproto" ? path.stem().string() : name_or_path;
}

std::string LlmName(const step::Experiment& experiment) {
  return experiment.has_inline_llm() ? experiment.inline_llm().name() : ModelName(experiment.llm());
}

std::string ModelText(const step::Step& step) {
  if (step.experiment.has_profiled()) {
    const step::ProfiledStages& p = step.experiment.profiled();
    std::string text = absl::StrFormat("profiled stages: forward %g ms, backward %g ms",
                                       p.forward_ms(), p.backward_ms());
    if (p.weight_ms() > 0) absl::StrAppendFormat(&text, ", weight gradient %g ms", p.weight_ms());
    if (p.together_ms() > 0) {
      absl::StrAppendFormat(&text, ", forward and backward together %g ms", p.together_ms());
    }
    absl::StrAppendFormat(&text, ", each transfer %g ms", p.communication_ms());
    return text;
  }
  std::vector<std::string> modules;
  // Encoders first, as data flows.
  for (std::size_t i = 1; i <= step.schedule.modules.size(); ++i) {
    const ir::ModuleInfo& module = step.schedule.modules[i % step.schedule.modules.size()];
    // The schedule calls the LLM "llm"; the experiment knows which.
    const bool is_llm = i == step.schedule.modules.size();
    const std::string known = is_llm ? LlmName(step.experiment) : "";
    modules.push_back(absl::StrCat(known.empty() ? module.name : known, " (",
                                   Count(module.layers, "layer", "layers"),
                                   module.frozen ? ", frozen)" : ")"));
  }
  return absl::StrJoin(modules, " + ");
}

std::string BatchText(const step::Step& step) {
  const step::Batch& batch = step.experiment.batch();
  std::string text = absl::StrCat(
      "global batch ", batch.global_batch(), ", micro-batch ", batch.micro_batch(), ": ",
      Count(step.schedule.micro_batches, "micro-batch", "micro-batches"), " per pipeline");
  if (batch.sequence_length() > 0) {
    absl::StrAppend(&text, "; ", batch.sequence_length(), " LLM tokens a sample");
  }
  for (const step::Encoder& encoder : step.experiment.encoders()) {
    absl::StrAppend(&text, "; ", encoder.sequences_per_sample(), " x ", encoder.sequence_length(),
                    " ", ModelName(encoder.model()), " tokens a sample");
    if (encoder.sequences_per_slice() > 0) {
      absl::StrAppend(&text, ", run ",
                      Count(encoder.sequences_per_slice(), "sequence", "sequences"), " at a time");
    }
    if (encoder.micro_batches_without_input_size() > 0) {
      absl::StrAppend(&text, ", none in micro-batch ",
                      absl::StrJoin(encoder.micro_batches_without_input(), ", "));
    }
  }
  return text;
}

std::string GpusText(const step::Step& step) {
  const ir::Parallelism& w = step.schedule.world;
  std::string text = absl::StrCat(w.gpus(), " (", step.schedule.gpus_per_node, " a node): DP ",
                                  w.dp, " x PP ", w.pp, " x TP ", w.tp);
  const step::Hardware& hardware = step.experiment.hardware();
  if (hardware.cluster_gpus() > w.gpus()) {
    absl::StrAppend(&text, ", in a cluster of ", hardware.cluster_gpus());
  }
  if (hardware.oversubscription() > 1) {
    absl::StrAppendFormat(&text, ", rail uplinks 1:%g", hardware.oversubscription());
  }
  for (const auto& slow : hardware.slow_gpus()) {
    absl::StrAppendFormat(&text, ", rank %d slower by %g", slow.rank(), slow.factor());
  }
  return text;
}

std::string OptimusText(const Plan& plan) {
  const step::Optimus& optimus = plan.optimus();
  std::string text = absl::StrCat(
      "Optimus: the LLM alone in the pipeline, encoders inside its bubbles; ",
      optimus.scheduler() == step::Optimus::LIST ? "list scheduler" : "the paper's scheduler",
      "; encoder data parallelism ");
  switch (optimus.encoder_data_parallel()) {
    case step::Optimus::ENCODER_DP_EXPOSED:
      return absl::StrCat(text, "exposed: one all-gather first, one reduce-scatter last");
    case step::Optimus::ENCODER_DP_NONE:
      return absl::StrCat(text, "as if it cost nothing");
    default:
      return absl::StrCat(text, "layer by layer, as early as it can go");
  }
}

// Nothing for what `pipeline` and `layout` say already.
std::string MethodText(const Plan& plan) {
  switch (plan.strategy()) {
    case Plan::OPTIMUS:
      return OptimusText(plan);
    case Plan::FSDP:
      return absl::StrCat("FSDP: fully sharded data parallelism, no pipeline; parameters gathered ",
                          Count(std::max(1, plan.fsdp().prefetch()), "layer", "layers"),
                          " ahead, gradients reduced in ",
                          plan.fsdp().reduce_in_fp32() ? "fp32" : "bf16");
    case Plan::ALPA:
      return "Alpa: stages by its inter-operator dynamic programme";
    default:
      return "";
  }
}

// What an automatic order may keep on a stage; `count` where nothing is said.
std::string MemoryLimitText(const step::Step& step, const std::string& count) {
  const double gib = step.experiment.plan().activation_limit_gib();
  if (gib > 0) return absl::StrCat(gib, " GiB of activations");
  const double micro_batches = step.experiment.profiled().memory_limit_micro_batches();
  if (micro_batches > 0) return absl::StrCat(micro_batches, " micro-batches");
  return count;
}

std::string PipelineText(const step::Step& step) {
  const Plan& plan = step.experiment.plan();
  std::string text;
  switch (plan.schedule()) {
    case Plan::GPIPE:
      return "GPipe";
    case Plan::ONE_F_ONE_B:
      return "1F1B";
    case Plan::ZB_H1:
      return "ZB-H1 (zero bubble), weight gradients apart";
    case Plan::ZB_H2:
      return "ZB-H2 (zero bubble), weight gradients apart";
    case Plan::ZB_1P:
      return absl::StrCat("ZB-1p (zero bubble), made for the stages' times in ",
                          MemoryLimitText(step, "the micro-batches of 1F1B"));
    case Plan::ZB_2P:
      return absl::StrCat("ZB-2p (zero bubble), made for the stages' times in ",
                          MemoryLimitText(step, "twice the micro-batches of 1F1B"));
    case Plan::ZB_V:
      return absl::StrCat("ZB-V (zero bubble), 2 model chunks placed as a V, made for the stages' ",
                          "times in ", MemoryLimitText(step, "the micro-batches of 1F1B"));
    case Plan::DUALPIPE:
      return "DualPipe, two copies of the model, one in each direction";
    case Plan::DUALPIPE_V:
      return "DualPipeV, 2 model chunks placed as a V";
    case Plan::CUSTOM:
      return absl::StrCat("custom, from ",
                          std::filesystem::path(plan.schedule_file()).filename().string(),
                          ", V = ", plan.model_chunks());
    case Plan::INTERLEAVED:
      text = "interleaved 1F1B";
      break;
    default:
      return "unspecified";
  }
  absl::StrAppend(&text, ", V = ", plan.model_chunks(), " model chunks, groups of ",
                  plan.micro_batch_group() > 0 ? plan.micro_batch_group() : step.schedule.world.pp,
                  " micro-batches, warm-up ");
  switch (plan.warm_up()) {
    case Plan::DEFERRED:
      return absl::StrCat(text, "deferred");
    case Plan::BEST:
      return absl::StrCat(text, "the faster of Megatron's and deferred");
    default:
      return absl::StrCat(text, "as Megatron-LM");
  }
}

std::string LayoutText(const Plan& plan) {
  switch (plan.layout()) {
    case Plan::EQUAL_LAYERS:
      return absl::StrCat("equal layer counts", plan.allow_uneven() ? ", uneven allowed" : "");
    case Plan::BALANCED:
      return "balanced by layer times (dynamic programme)";
    case Plan::EXPLICIT:
      return absl::StrCat("explicit: ", plan.layout_string());
    case Plan::ENCODER_IN_STAGE_0:
      return "encoder in the first virtual stage, LLM layers equally";
    case Plan::LAYER_COUNTS:
      return absl::StrCat("layer counts ", absl::StrJoin(plan.layer_counts(), ","));
    case Plan::INTER_OPERATOR:
      return "contiguous layers, stages balanced by Alpa's inter-operator dynamic programme";
    default:
      return "unspecified";
  }
}

std::string RecomputeText(const Plan& plan) {
  std::string text;
  switch (plan.recompute()) {
    case Plan::RECOMPUTE_SELECTIVE:
      text = "attention only";
      break;
    case Plan::RECOMPUTE_FULL:
      text = "all layers";
      break;
    default:
      text = "none";
  }
  if (plan.no_sequence_parallel()) absl::StrAppend(&text, ", no sequence parallelism");
  if (plan.unfused_attention()) absl::StrAppend(&text, ", unfused attention");
  if (plan.unfused_elementwise()) absl::StrAppend(&text, ", unfused element-wise kernels");
  return text;
}

std::string OptimizerText(const Plan& plan) {
  if (plan.no_optimizer()) return "none, and no data-parallel communication";
  std::string text = plan.no_distributed_optimizer()
                         ? "replicated: gradient all-reduce"
                         : "distributed: parameter all-gather, gradient reduce-scatter";
  const bool copies = step::ModelCopies(plan) > 1;
  if (plan.data_parallel() == 1 && !copies) return "one replica: no data-parallel communication";
  if (plan.grad_reduce_in_bf16()) absl::StrAppend(&text, " in bf16");
  if (copies) absl::StrAppend(&text, ", over both copies");
  if (plan.dp_communication() != Plan::DP_OVERLAPPED) return absl::StrCat(text, ", exposed");
  if (plan.dp_bucket_parameters() == 0) return absl::StrCat(text, ", overlapped per model chunk");
  return absl::StrCat(text, ", overlapped in buckets of ", plan.dp_bucket_parameters(),
                      " parameters of a GPU or more");
}

}  // namespace

std::vector<Fact> DescribeStep(const step::Step& step) {
  const step::Experiment& experiment = step.experiment;
  std::vector<Fact> facts;
  if (!experiment.description().empty()) facts.push_back({"", experiment.description()});
  if (!step.schedule.modules.empty()) facts.push_back({"model", ModelText(step)});
  const bool from_schedule_file = !experiment.has_plan();
  if (from_schedule_file) {
    facts.push_back({"batch", Count(step.schedule.micro_batches, "micro-batch", "micro-batches") +
                                  " per pipeline"});
    facts.push_back({"GPUs", GpusText(step)});
    return facts;
  }
  facts.push_back({"batch", BatchText(step)});
  facts.push_back({"GPUs", GpusText(step)});
  const bool pipeline = experiment.plan().strategy() != Plan::FSDP;
  if (std::string method = MethodText(experiment.plan()); !method.empty()) {
    facts.push_back({"method", std::move(method)});
  }
  if (pipeline) facts.push_back({"pipeline", PipelineText(step)});
  if (!experiment.has_profiled()) {
    if (pipeline) facts.push_back({"layout", LayoutText(experiment.plan())});
    facts.push_back({"recompute", RecomputeText(experiment.plan())});
  }
  facts.push_back({"optimizer", OptimizerText(experiment.plan())});
  return facts;
}

}  // namespace optimus::tools
