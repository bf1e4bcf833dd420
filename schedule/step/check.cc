#include "schedule/step/check.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/step/check_fields.h"
#include "schedule/step/check_schedule.h"
#include "schedule/step/check_strategy.h"

namespace optimus::step {
namespace {

constexpr int kDefaultNodesPerLeaf = 32;
// Tags hold layers and chunks in 16 bits; a profiled virtual stage is tagged as one layer.
constexpr std::int64_t kMaxVirtualStages = 30000;
// Beyond this the order alone would take hundreds of megabytes; no real step comes near it.
constexpr double kMaxSlots = 4e6;
// Tags hold modules and slices in 16 bits too.
constexpr int kMaxEncoders = 64;
constexpr std::int64_t kMaxSlices = 4096;
// One hour for a micro-batch. With the largest slow-down still less than half of 2^63 ps.
constexpr double kMaxMilliseconds = 3.6e6;
constexpr double kMaxSlowDown = 1000;
constexpr double kMaxOversubscription = 1e6;
// A step of more tokens than any model was ever trained on in all.
constexpr double kMaxTokens = 1e15;

bool HasLlm(const Experiment& experiment) {
  return !experiment.llm().empty() || experiment.has_inline_llm();
}

std::int64_t SequencesPerMicroBatch(const Experiment& experiment, const Encoder& encoder) {
  return std::int64_t{encoder.sequences_per_sample()} * experiment.batch().micro_batch();
}

bool FitsInt32(std::int64_t value) {
  return value >= std::numeric_limits<std::int32_t>::min() &&
         value <= std::numeric_limits<std::int32_t>::max();
}

absl::Status CheckMilliseconds(const std::string& field, double value, bool zero_allowed) {
  if (value > kMaxMilliseconds) {
    return Bad(field, absl::StrCat(value, " is too large"),
               absl::StrCat("at most ", kMaxMilliseconds, " ms (an hour)"));
  }
  if (std::isfinite(value) && (value > 0 || (zero_allowed && value == 0))) return absl::OkStatus();
  return Bad(
      field, absl::StrCat("is ", value, " ms"),
      zero_allowed ? "it must be a finite time, 0 or more" : "it must be a finite time above 0");
}

// `sequences` a sample. In double: the product may not fit 63 bits.
absl::Status CheckTokens(const std::string& field, const Experiment& experiment,
                         std::int64_t sequences, std::int64_t length) {
  const double tokens = static_cast<double>(experiment.batch().global_batch()) *
                        static_cast<double>(sequences) * static_cast<double>(length);
  if (tokens <= kMaxTokens) return absl::OkStatus();
  return Bad(field,
             absl::StrCat(length, " makes ", tokens, " tokens a step, more than ", kMaxTokens),
             "use shorter sequences or a smaller global batch");
}

absl::Status CheckSlowGpus(const Hardware& hardware) {
  std::set<int> seen;
  for (int i = 0; i < hardware.slow_gpus_size(); ++i) {
    const Hardware::SlowGpu& slow = hardware.slow_gpus(i);
    const std::string field = absl::StrCat("hardware.slow_gpus[", i, "]");
    if (slow.rank() < 0 || slow.rank() >= hardware.gpus()) {
      return Bad(field + ".rank", absl::StrCat("is ", slow.rank()),
                 absl::StrCat("ranks go from 0 to ", hardware.gpus() - 1));
    }
    if (!(slow.factor() > 0 && slow.factor() <= kMaxSlowDown)) {
      return Bad(field + ".factor", absl::StrCat("is ", slow.factor()),
                 absl::StrCat("kernel times are multiplied by it: it must be above 0 and at most ",
                              kMaxSlowDown, ", 1 changes nothing"));
    }
    if (!seen.insert(slow.rank()).second) {
      return Bad(field + ".rank", absl::StrCat(slow.rank(), " is listed twice"), "keep one entry");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckHardware(const Experiment& experiment) {
  const Hardware& hardware = experiment.hardware();
  const Plan& plan = experiment.plan();
  if (hardware.profile().empty()) {
    return Bad("hardware.profile", "is missing", "name a profile, for example \"h100-80gb\"");
  }
  OPTIMUS_RETURN_IF_ERROR(CheckPositive("hardware.gpus", hardware.gpus()));
  const std::int64_t product = std::int64_t{plan.data_parallel()} * plan.pipeline_parallel();
  // The first product fits 63 bits; a second one this large cannot be right either way.
  if (product > hardware.gpus() || product * plan.tensor_parallel() != hardware.gpus()) {
    return Bad("hardware.gpus",
               absl::StrCat(hardware.gpus(), " is not data_parallel * pipeline_parallel * ",
                            "tensor_parallel = ", plan.data_parallel(), " * ",
                            plan.pipeline_parallel(), " * ", plan.tensor_parallel()),
               "change hardware.gpus or the plan");
  }
  if (hardware.gpus() > hardware.cluster_gpus()) {
    return Bad("hardware.cluster_gpus",
               absl::StrCat("the plan needs ", hardware.gpus(), " GPUs, the cluster has ",
                            hardware.cluster_gpus()),
               "make the plan smaller or the cluster larger (0: as large as the plan)");
  }
  OPTIMUS_RETURN_IF_ERROR(CheckPositive("hardware.nodes_per_leaf", hardware.nodes_per_leaf()));
  if (!(hardware.oversubscription() >= 1 && hardware.oversubscription() <= kMaxOversubscription)) {
    return Bad("hardware.oversubscription", absl::StrCat("is ", hardware.oversubscription()),
               absl::StrCat("uplinks are 1 : oversubscription; 1 (or 0) means none, 2 means half, "
                            "at most ",
                            kMaxOversubscription));
  }
  return CheckSlowGpus(hardware);
}

absl::Status CheckBatch(const Experiment& experiment) {
  const Batch& batch = experiment.batch();
  OPTIMUS_RETURN_IF_ERROR(CheckPositive("batch.global_batch", batch.global_batch()));
  OPTIMUS_RETURN_IF_ERROR(CheckPositive("batch.micro_batch", batch.micro_batch()));
  if (!experiment.has_profiled()) {
    OPTIMUS_RETURN_IF_ERROR(CheckPositive("batch.sequence_length", batch.sequence_length()));
  }
  OPTIMUS_RETURN_IF_ERROR(CheckNotNegative("batch.sequence_length", batch.sequence_length()));
  OPTIMUS_RETURN_IF_ERROR(
      CheckTokens("batch.sequence_length", experiment, 1, batch.sequence_length()));
  const std::int64_t per_turn =
      std::int64_t{experiment.plan().data_parallel()} * batch.micro_batch();
  if (batch.global_batch() % per_turn != 0) {
    return Bad("batch.global_batch",
               absl::StrCat(batch.global_batch(), " is not a multiple of data_parallel * ",
                            "micro_batch = ", experiment.plan().data_parallel(), " * ",
                            batch.micro_batch()),
               "every pipeline must get the same number of whole micro-batches");
  }
  // In double: three 31-bit counts may not fit 63 bits.
  const std::int64_t micro_batches = batch.global_batch() / per_turn;
  const double slots = static_cast<double>(micro_batches) * experiment.plan().model_chunks() *
                       experiment.plan().pipeline_parallel();
  if (slots > kMaxSlots) {
    return Bad("batch.global_batch",
               absl::StrCat("makes ", slots, " micro-batch passes of virtual stages, more than ",
                            kMaxSlots),
               "use larger micro-batches, more data parallelism or fewer model chunks");
  }
  return absl::OkStatus();
}

// `sequences` of a micro-batch; its slices are tagged with their number.
absl::Status CheckSlices(const Experiment& experiment, int index, std::int64_t sequences) {
  const Encoder& encoder = experiment.encoders(index);
  const std::string field = absl::StrCat("encoders[", index, "].sequences_per_slice");
  if (encoder.sequences_per_slice() < 1) {
    return Bad(field, absl::StrCat(encoder.sequences_per_slice(), " is below 0"),
               "leave it out to run the whole micro-batch at once");
  }
  if (sequences % encoder.sequences_per_slice() != 0) {
    return Bad(field,
               absl::StrCat(encoder.sequences_per_slice(), " does not divide the ", sequences,
                            " sequences of a micro-batch (", experiment.batch().micro_batch(),
                            " samples * ", encoder.sequences_per_sample(), ")"),
               "use a divisor, or 0 for the whole micro-batch");
  }
  const std::int64_t slices = sequences / encoder.sequences_per_slice();
  if (slices <= kMaxSlices) return absl::OkStatus();
  return Bad(
      field,
      absl::StrCat(encoder.sequences_per_slice(), " cuts the ", sequences,
                   " sequences of a micro-batch into ", slices, " slices, more than ", kMaxSlices),
      "use larger slices, or 0 for the whole micro-batch");
}

absl::Status CheckEncoder(const Experiment& experiment, int index) {
  const Encoder& encoder = experiment.encoders(index);
  const std::string field = absl::StrCat("encoders[", index, "]");
  if (encoder.model().empty()) {
    return Bad(field + ".model", "is missing", "name a model, for example \"vit-22b\"");
  }
  OPTIMUS_RETURN_IF_ERROR(
      CheckPositive(field + ".sequences_per_sample", encoder.sequences_per_sample()));
  OPTIMUS_RETURN_IF_ERROR(CheckPositive(field + ".sequence_length", encoder.sequence_length()));
  OPTIMUS_RETURN_IF_ERROR(CheckTokens(field + ".sequence_length", experiment,
                                      encoder.sequences_per_sample(), encoder.sequence_length()));
  const std::int64_t sequences = SequencesPerMicroBatch(experiment, encoder);
  if (!FitsInt32(sequences)) {
    return Bad(field + ".sequences_per_sample",
               absl::StrCat(encoder.sequences_per_sample(), " * micro_batch ",
                            experiment.batch().micro_batch(), " = ", sequences,
                            " sequences do not fit 32 bits"),
               "use fewer sequences or smaller micro-batches");
  }
  return CheckSlices(experiment, index, sequences);
}

absl::Status CheckModels(const Experiment& experiment) {
  if (experiment.has_profiled()) {
    if (HasLlm(experiment) || experiment.encoders_size() > 0) {
      return Bad("profiled", "is given together with llm, inline_llm or encoders",
                 "use measured stage times or models, not both");
    }
    const ProfiledStages& times = experiment.profiled();
    OPTIMUS_RETURN_IF_ERROR(
        CheckMilliseconds("profiled.forward_ms", times.forward_ms(), /*zero_allowed=*/false));
    OPTIMUS_RETURN_IF_ERROR(
        CheckMilliseconds("profiled.backward_ms", times.backward_ms(), /*zero_allowed=*/false));
    OPTIMUS_RETURN_IF_ERROR(
        CheckMilliseconds("profiled.weight_ms", times.weight_ms(), /*zero_allowed=*/true));
    OPTIMUS_RETURN_IF_ERROR(CheckMilliseconds("profiled.communication_ms", times.communication_ms(),
                                              /*zero_allowed=*/true));
    OPTIMUS_RETURN_IF_ERROR(
        CheckMilliseconds("profiled.together_ms", times.together_ms(), /*zero_allowed=*/true));
    if (times.has_weight_share() && !(times.weight_share() >= 0 && times.weight_share() <= 1)) {
      return Bad("profiled.weight_share", absl::StrCat("is ", times.weight_share()),
                 "it is a share of a micro-batch's activations, from 0 to 1");
    }
    return absl::OkStatus();
  }
  if (!HasLlm(experiment)) {
    return Bad("llm", "is missing",
               "name a model, for example \"gpt-175b\", or give inline_llm or profiled");
  }
  if (!experiment.llm().empty() && experiment.has_inline_llm()) {
    return Bad("inline_llm", "is given together with llm", "keep one of them");
  }
  if (experiment.encoders_size() > kMaxEncoders) {
    return Bad("encoders", absl::StrCat("there are ", experiment.encoders_size()),
               absl::StrCat("at most ", kMaxEncoders, " are supported"));
  }
  for (int i = 0; i < experiment.encoders_size(); ++i) {
    OPTIMUS_RETURN_IF_ERROR(CheckEncoder(experiment, i));
    OPTIMUS_RETURN_IF_ERROR(CheckMicroBatchesWithoutInput(experiment, i));
  }
  return absl::OkStatus();
}

absl::Status CheckLayout(const Experiment& experiment) {
  const Plan& plan = experiment.plan();
  if (experiment.has_profiled()) {
    if (plan.layout() == Plan::LAYOUT_UNSPECIFIED) return absl::OkStatus();
    return Bad("plan.layout", "is set for profiled stages",
               "remove it: a profiled stage's time is split evenly over its model chunks");
  }
  OPTIMUS_RETURN_IF_ERROR(CheckChosen("plan.layout", plan.layout(),
                                      Plan::Layout_IsValid(plan.layout()),
                                      "EQUAL_LAYERS, BALANCED, EXPLICIT, ENCODER_IN_STAGE_0 or "
                                      "LAYER_COUNTS"));
  if ((plan.layout() == Plan::EXPLICIT) != !plan.layout_string().empty()) {
    return Bad("plan.layout_string",
               plan.layout_string().empty() ? "is missing for layout EXPLICIT"
                                            : "is set for another layout than EXPLICIT",
               "stages are separated by '|', for example \"Et*4|t*4L\"");
  }
  if ((plan.layout() == Plan::LAYER_COUNTS) != (plan.layer_counts_size() > 0)) {
    return Bad("plan.layer_counts",
               plan.layer_counts_size() == 0 ? "is missing for layout LAYER_COUNTS"
                                             : "is set for another layout than LAYER_COUNTS",
               "one count per virtual stage, in pipeline order");
  }
  if (plan.layout() == Plan::ENCODER_IN_STAGE_0 && experiment.encoders_size() == 0) {
    return Bad("plan.layout", "ENCODER_IN_STAGE_0 without an encoder",
               "add encoders or use EQUAL_LAYERS");
  }
  return absl::OkStatus();
}

absl::Status CheckPlan(const Experiment& experiment) {
  const Plan& plan = experiment.plan();
  OPTIMUS_RETURN_IF_ERROR(CheckPositive("plan.data_parallel", plan.data_parallel()));
  OPTIMUS_RETURN_IF_ERROR(CheckPositive("plan.pipeline_parallel", plan.pipeline_parallel()));
  OPTIMUS_RETURN_IF_ERROR(CheckPositive("plan.tensor_parallel", plan.tensor_parallel()));
  OPTIMUS_RETURN_IF_ERROR(CheckPositive("plan.model_chunks", plan.model_chunks()));
  OPTIMUS_RETURN_IF_ERROR(CheckNotNegative("plan.micro_batch_group", plan.micro_batch_group()));
  if (std::int64_t{plan.model_chunks()} * plan.pipeline_parallel() > kMaxVirtualStages) {
    return Bad("plan.model_chunks",
               absl::StrCat("is ", plan.model_chunks(), " with pipeline_parallel ",
                            plan.pipeline_parallel()),
               absl::StrCat("their product may be at most ", kMaxVirtualStages));
  }
  OPTIMUS_RETURN_IF_ERROR(CheckStrategy(experiment));
  OPTIMUS_RETURN_IF_ERROR(CheckPipelineSchedule(experiment));
  OPTIMUS_RETURN_IF_ERROR(CheckLayout(experiment));
  OPTIMUS_RETURN_IF_ERROR(CheckKnown("plan.recompute", plan.recompute(),
                                     Plan::Recompute_IsValid(plan.recompute()),
                                     "RECOMPUTE_NONE, RECOMPUTE_SELECTIVE or RECOMPUTE_FULL"));
  OPTIMUS_RETURN_IF_ERROR(
      CheckKnown("plan.dp_communication", plan.dp_communication(),
                 Plan::DataParallelCommunication_IsValid(plan.dp_communication()),
                 "DP_EXPOSED or DP_OVERLAPPED"));
  if (plan.dp_bucket_parameters() < 0) {
    return CheckNotNegative("plan.dp_bucket_parameters", plan.dp_bucket_parameters());
  }
  if (plan.dp_bucket_parameters() > 0 && plan.dp_communication() != Plan::DP_OVERLAPPED) {
    return Bad("plan.dp_bucket_parameters", "is set without DP_OVERLAPPED",
               "remove it, or set dp_communication: DP_OVERLAPPED");
  }
  if (experiment.has_profiled() && !plan.no_optimizer()) {
    return Bad("plan.no_optimizer", "is false for profiled stages",
               "set it: stages without a model have no parameters to update");
  }
  return absl::OkStatus();
}

}  // namespace

void FillDefaults(Experiment& experiment) {
  Hardware& hardware = *experiment.mutable_hardware();
  Plan& plan = *experiment.mutable_plan();
  if (hardware.cluster_gpus() == 0) hardware.set_cluster_gpus(hardware.gpus());
  if (hardware.oversubscription() == 0) hardware.set_oversubscription(1);
  if (hardware.nodes_per_leaf() == 0) hardware.set_nodes_per_leaf(kDefaultNodesPerLeaf);
  FillStrategyDefaults(plan);
  FillScheduleDefaults(plan);
  for (Encoder& encoder : *experiment.mutable_encoders()) {
    if (encoder.sequences_per_slice() != 0) continue;
    const std::int64_t all = SequencesPerMicroBatch(experiment, encoder);
    // The check refuses what does not fit.
    if (FitsInt32(all)) encoder.set_sequences_per_slice(static_cast<std::int32_t>(all));
  }
}

absl::Status CheckExperiment(const Experiment& experiment) {
  OPTIMUS_RETURN_IF_ERROR(CheckPlan(experiment));
  OPTIMUS_RETURN_IF_ERROR(CheckHardware(experiment));
  OPTIMUS_RETURN_IF_ERROR(CheckBatch(experiment));
  return CheckModels(experiment);
}

std::int32_t MicroBatches(const Experiment& experiment) {
  return experiment.batch().global_batch() /
         (experiment.plan().data_parallel() * experiment.batch().micro_batch());
}

}  // namespace optimus::step
