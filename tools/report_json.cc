#include "tools/report_json.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tools/json_pieces.h"
#include "tools/optimus_json.h"
#include "tools/report_text.h"
#include "tools/spread.h"

namespace optimus::tools {
namespace {

using Json = nlohmann::ordered_json;

void AddTime(const TimeShares& time, Json& json) {
  json["compute_s"] = time.compute_s;
  json["optimizer_s"] = time.optimizer_s;
  Json& bubbles = json["bubbles"];
  for (int i = 0; i < ir::kBubbleClassCount; ++i) {
    bubbles[absl::StrCat(ir::ToString(static_cast<ir::BubbleClass>(i)), "_s")] = time.bubbles_s[i];
  }
}

Json MemoryJson(const step::StageMemory& memory, Bytes capacity) {
  Json json;
  json["parameters_gib"] = ToGib(memory.parameters);
  json["gradients_gib"] = ToGib(memory.gradients);
  json["optimizer_state_gib"] = ToGib(memory.optimizer_state);
  json["activations_gib"] = ToGib(memory.activations);
  json["workspace_gib"] = ToGib(memory.workspace);
  json["total_gib"] = ToGib(memory.total());
  json["capacity_gib"] = ToGib(capacity);
  return json;
}

void AddEfficiency(const Report& report, Json& json) {
  if (!report.no_efficiency.empty()) json["no_efficiency"] = report.no_efficiency;
  if (!report.efficiency) return;
  json["mfu"] = report.efficiency->mfu;
  json["hfu"] = report.efficiency->hfu;
  json["aggregate_pflops_per_s"] = report.efficiency->aggregate_pflops_per_s;
  json["model_flops"] = report.efficiency->model_flops;
  json["hardware_flops"] = report.efficiency->hardware_flops;
}

Json StagesJson(const Report& report) {
  Json stages = Json::array();
  for (const StageReport& stage : report.stages) {
    Json json;
    json["stage"] = stage.stage;
    json["gpus"] = stage.gpus;
    AddTime(stage.time, json);
    if (report.memory) {
      json["memory"] = MemoryJson(report.memory->stages[stage.stage], report.memory->capacity);
    }
    if (!stage.layers.empty()) json["layers"] = stage.layers;
    stages.push_back(std::move(json));
  }
  return stages;
}

void AddMeasured(const Report& report, Json& json) {
  const MeasuredReport& measured = *report.measured;
  Json& out = json["measured"];
  out["backend"] = measured.backend;
  out["device"] = measured.device;
  out["hosts"] = measured.hosts;
  out["warm_up_steps"] = measured.warm_up;
  out["time_scale"] = measured.time_scale;
  if (measured.emulation) AddEmulation(*measured.emulation, out);
  std::vector<double> steps = InSeconds(measured.steps);
  for (double& step : steps) step /= measured.time_scale;
  const Spread spread = SpreadOfSteps(steps);
  out["median_s"] = ToSeconds(report.step);  // the same step, rounded once
  out["first_quartile_s"] = spread.first_quartile;
  out["third_quartile_s"] = spread.third_quartile;
  out["least_s"] = spread.least;
  out["greatest_s"] = spread.greatest;
  out["steps_s"] = steps;
}

void AddConditionsOf(const Report& report, Json& json) {
  if (report.measured) {
    json["version"] = report.version;
    json["experiment"] = report.experiment;
    if (!report.profile.empty()) json["profile"] = report.profile;
    if (!report.profile.empty()) json["profile_hash"] = report.profile_hash;
    return AddMeasured(report, json);
  }
  AddConditions(report, json);
  json["fidelity_reason"] = report.fidelity_reason;
  json["interference"] = InterferenceJson(report.interference.factors);
}

Json ReportJson(const Report& report) {
  Json json;
  AddConditionsOf(report, json);
  json["gpus"] = report.gpus;
  json["iteration_time_s"] = ToSeconds(report.step);
  AddEfficiency(report, json);
  AddTime(report.average, json);
  if (report.memory) {
    const MemoryReport& memory = *report.memory;
    json["memory"] = MemoryJson(memory.stages[memory.fullest], memory.capacity);
    json["fits"] = memory.fits();
  }
  if (report.optimus) json["optimus"] = OptimusJson(*report.optimus);
  if (report.numerics) json["numerics"] = NumericsJson(*report.numerics);
  json["stages"] = StagesJson(report);
  json["assumptions"] = report.assumptions;
  json["notes"] = report.notes;
  json["entities"] = report.entities;
  json["operations"] = report.operations;
  json["wall_s"] = report.wall_s;
  json["peak_memory_mib"] = report.peak_memory_mib;
  return json;
}

constexpr JsonField kFields[] = {
    {"version", "of optimus"},
    {"experiment", "name of the experiment (of the schedule, for a schedule file)"},
    {"profile", "name of the hardware profile"},
    {"profile_hash", "of the profile's content (FNV-1a, 64 bits, hexadecimal)"},
    {"fidelity", "folded, group or gpu"},
    {"fidelity_reason", "why that fidelity"},
    {"interference.kernel_under_nvlink_factor",
     "factors on durations that were applied: a kernel under a collective over NVLink"},
    {"interference.kernel_under_nic_factor", "a kernel under a collective over the network card"},
    {"interference.collective_under_kernel_factor",
     "a collective over NVLink that starts under a kernel"},
    {"gpus", "GPUs of the run"},
    {"iteration_time_s", "time of one training step"},
    {"mfu", "model FLOPs / (step x GPUs x peak); a share, not per cent"},
    {"hfu", "hardware FLOPs / (step x GPUs x peak)"},
    {"aggregate_pflops_per_s", "model FLOPs / step, all GPUs, in 10^15 a second"},
    {"model_flops", "6 N tokens + 12 L h s tokens, attention in full, no recomputation"},
    {"hardware_flops", "of the kernels run: with recomputation, causal attention by half"},
    {"compute_s", "mean over GPUs: forward, backward, recomputation"},
    {"optimizer_s", "mean over GPUs: optimizer step"},
    {"bubbles.dp_all_gather_s", "mean idle time before gathered parameters"},
    {"bubbles.dp_reduce_scatter_s", "mean idle time before reduced gradients"},
    {"bubbles.pp_warmup_s", "mean idle time before a GPU's first forward"},
    {"bubbles.pp_cooldown_s", "mean idle time after a GPU's last backward"},
    {"bubbles.pp_other_s", "mean idle time for any other dependency"},
    {"bubbles.tp_s", "mean idle time in tensor-parallel collectives"},
    {"memory.parameters_gib", "of one GPU of the fullest stage: bf16 parameters"},
    {"memory.gradients_gib", "gradients: fp32, or bf16 under plan.grad_reduce_in_bf16"},
    {"memory.optimizer_state_gib", "fp32 parameters and Adam's moments"},
    {"memory.activations_gib", "activations kept at the peak of the pipeline"},
    {"memory.workspace_gib", "recomputed layer, logits, communication buffers"},
    {"memory.total_gib", "their sum"},
    {"memory.capacity_gib", "memory of one GPU"},
    {"fits", "whether total is at most capacity"},
    {"optimus",
     "strategy OPTIMUS only: scheduler, the plan that was simulated, prediction and what moves the "
     "step from it, under the names of `optimus plan`"},
    {"stages", "the same times and memory for every pipeline stage, with its layers by chunk"},
    {"assumptions", "what the experiment's source does not say"},
    {"notes", "what the plan or the model of it simplifies"},
    {"entities",
     "simulated: stages and their lanes (folded), tensor-parallel groups or lanes of every replica "
     "(group) or GPUs (gpu)"},
    {"operations", "operations simulated, over all entities"},
    {"wall_s", "wall time of building and simulating; differs from run to run"},
    {"peak_memory_mib", "resident memory of optimus; differs from run to run"},
};

}  // namespace

absl::Span<const JsonField> JsonFields() { return kFields; }

std::string ToJson(const std::vector<Report>& reports) {
  if (reports.size() == 1) return DumpJson(ReportJson(reports.front()));
  Json json;
  json["results"] = Json::array();
  for (const Report& report : reports) {
    Json one = ReportJson(report);
    one["speed_up"] = SpeedUp(reports.front(), report);
    one["reduction_percent"] = ReductionPercent(reports.front(), report);
    json["results"].push_back(std::move(one));
  }
  return DumpJson(json);
}

}  // namespace optimus::tools
