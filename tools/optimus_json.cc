#include "tools/optimus_json.h"

#include "tools/json_pieces.h"

namespace optimus::tools {
namespace {

using Json = nlohmann::ordered_json;
using colocate::RankedPlan;

Json EncodersJson(const OptimusReport& optimus, const std::vector<planner::EncoderPlan>& plans) {
  Json encoders = Json::array();
  for (std::size_t e = 0; e < plans.size(); ++e) {
    Json json;
    // A plan that was dropped early has only the largest encoders: no telling by position which.
    if (plans.size() == optimus.encoders.size()) json["encoder"] = optimus.encoders[e];
    json["data_parallel"] = planner::DataParallelOf(plans[e], optimus.llm);
    json["pipeline_parallel"] = plans[e].pipeline_parallel;
    json["tensor_parallel"] = plans[e].tensor_parallel;
    json["pipelines"] = planner::PipelinesOf(plans[e], optimus.llm);
    encoders.push_back(std::move(json));
  }
  return encoders;
}

Json EfficiencyJson(double coarse, double fine) {
  Json json;
  json["coarse"] = coarse;
  json["fine"] = fine;
  return json;
}

// What is known of every plan.
void AddPlan(const OptimusReport& optimus, const RankedPlan& plan, Json& json) {
  json["predicted_iteration_time_s"] = ToSeconds(plan.predicted);
  json["llm_iteration_time_s"] = ToSeconds(plan.llm_step);
  json["coarse_iteration_time_s"] = ToSeconds(plan.coarse);
  json["work_bound_s"] = ToSeconds(plan.bounds.work);
  json["fluid_bound_s"] = ToSeconds(plan.bounds.fluid);
  json["gap_left"] = GapLeft(plan);
  json["eff_work"] = EfficiencyJson(plan.coarse_efficiency.work, plan.fine_efficiency.work);
  json["eff_time"] = EfficiencyJson(plan.coarse_efficiency.time, plan.fine_efficiency.time);
  json["delta_f_s"] = ToSeconds(plan.delta_f);
  json["delta_b_s"] = ToSeconds(plan.delta_b);
  if (plan.encoder_data_parallel) {
    json["encoder_data_parallel_s"] = ToSeconds(*plan.encoder_data_parallel);
  }
  Json encoders = EncodersJson(optimus, plan.encoders);
  for (std::size_t e = 0; e < plan.splits.size(); ++e) encoders[e]["split"] = plan.splits[e];
  json["encoders"] = std::move(encoders);
  json["warm_up"] = plan.warm_up == step::Plan::DEFERRED ? "deferred" : "megatron";
  json["memory_gib"] = ToGib(plan.memory.total());
  json["placed_by"] = SchedulerName(plan.scheduler);
  if (plan.judged) json["judged_iteration_time_s"] = ToSeconds(*plan.judged);
}

void AddComparison(const OptimusReport& optimus, Json& json) {
  const StepComparison& step = optimus.step;
  json["least_fluid_bound_s"] = ToSeconds(LeastFluidBound(optimus.plan));
  json["simulated_iteration_time_s"] = ToSeconds(step.simulated);
  json["difference_percent"] = step.difference_percent();
  json["order_effect_s"] = ToSeconds(step.order());
  json["contention_effect_s"] = ToSeconds(step.contention());
  json["interference_effect_s"] = ToSeconds(step.interference());
}

constexpr JsonField kFields[] = {
    {"version", "of optimus"},
    {"experiment", "name of the experiment"},
    {"profile", "name of the hardware profile"},
    {"profile_hash", "of the profile's content (FNV-1a, 64 bits, hexadecimal)"},
    {"fidelity", "of the simulation: folded, group or gpu"},
    {"gpus", "GPUs of the run"},
    {"interference.kernel_under_nvlink_factor",
     "factors on durations that the simulation applied: a kernel under a collective over NVLink"},
    {"interference.kernel_under_nic_factor", "a kernel under a collective over the network card"},
    {"interference.collective_under_kernel_factor",
     "a collective over NVLink that starts under a kernel"},
    {"scheduler", "paper or list"},
    {"exhaustive", "whether all splits were tried, instead of a local search"},
    {"predicted_iteration_time_s", "step of the best plan by the bubble scheduler"},
    {"llm_iteration_time_s", "T_llm: step of the LLM alone"},
    {"coarse_iteration_time_s",
     "before encoder work was moved between the LLM's kernels; under list: of paper's schedule of "
     "the same plan"},
    {"work_bound_s", "lower bound: compute of LLM and encoders spread over all GPUs, and T_llm"},
    {"fluid_bound_s",
     "lower bound of this plan for a rigid LLM timeline: encoder work cut at will into its idle "
     "compute, and the encoders' own data-parallel communication"},
    {"gap_left", "(predicted - fluid bound) / (coarse - fluid bound); a share"},
    {"eff_work.coarse", "share of the encoders' work inside LLM bubbles, coarse schedule"},
    {"eff_work.fine", "the same, final schedule"},
    {"eff_time.coarse", "1 - (step - T_llm) / encoder time of the busiest GPU, coarse schedule"},
    {"eff_time.fine", "the same, final schedule"},
    {"delta_f_s", "the LLM starts so much later than alone"},
    {"delta_b_s", "the end comes so much later still"},
    {"encoder_data_parallel_s",
     "of the prediction: the encoders' own data-parallel communication; of the best plans only"},
    {"encoders",
     "by encoder: encoder (name), data_parallel, pipeline_parallel, tensor_parallel, pipelines "
     "(beside each LLM pipeline), split (micro-batches of each)"},
    {"warm_up", "of the LLM's pipeline: megatron or deferred"},
    {"memory_gib", "of the fullest GPU"},
    {"placed_by", "scheduler of this plan: under list the best of paper takes part too"},
    {"judged_iteration_time_s",
     "step by SimGrid during planning, by which list chooses; of the plans that were run only"},
    {"least_fluid_bound_s", "least fluid_bound_s of all plans that were scheduled"},
    {"simulated_iteration_time_s", "step of the emitted schedule by SimGrid"},
    {"difference_percent", "simulated against predicted"},
    {"order_effect_s",
     "of the difference: operations start as soon as their order allows (shorter), messages queue "
     "behind each other, which is not in the prediction (longer)"},
    {"contention_effect_s", "of the difference: transfers share links, GPUs are slow"},
    {"interference_effect_s", "of the difference: kernels and collectives slow each other"},
    {"memory_capacity_gib", "memory of one GPU"},
    {"planning_s", "wall time of planning; differs from run to run"},
    {"judging_s", "wall time of running plans during planning; differs from run to run"},
    {"splits_evaluated", "splits that were scheduled, over all plans"},
    {"plans",
     "every plan that was scheduled, best first: by the simulated step where they were run, else "
     "by "
     "prediction; with the names from predicted_iteration_time_s to "
     "judged_iteration_time_s"},
    {"dropped",
     "every plan that does not suit the models, does not fit in memory or cannot be better: "
     "encoders "
     "(without split; without names where only the largest of several were looked at), reason"},
    {"assumptions", "what the experiment's source does not say"},
    {"notes", "what the plan or the model of it simplifies"},
    {"wall_s", "wall time of planning and simulating; differs from run to run"},
    {"peak_memory_mib", "resident memory of optimus; differs from run to run"},
};

Json RankedJson(const OptimusReport& optimus) {
  Json plans = Json::array();
  for (const RankedPlan& plan : optimus.plan.ranked) {
    Json json;
    AddPlan(optimus, plan, json);
    plans.push_back(std::move(json));
  }
  return plans;
}

Json DroppedJson(const OptimusReport& optimus) {
  Json dropped = Json::array();
  for (const colocate::DroppedPlan& plan : optimus.plan.dropped) {
    Json json;
    json["encoders"] = EncodersJson(optimus, plan.encoders);
    json["reason"] = plan.reason;
    dropped.push_back(std::move(json));
  }
  return dropped;
}

}  // namespace

absl::Span<const JsonField> PlanJsonFields() { return kFields; }

Json OptimusJson(const OptimusReport& optimus) {
  Json json;
  json["scheduler"] = optimus.scheduler;
  AddPlan(optimus, optimus.plan.ranked.front(), json);
  AddComparison(optimus, json);
  json["planning_s"] = optimus.plan.planning_seconds;
  return json;
}

std::string PlanJson(const Report& report) {
  const OptimusReport& optimus = *report.optimus;
  Json json;
  AddConditions(report, json);
  json["gpus"] = report.gpus;
  json["interference"] = InterferenceJson(report.interference.factors);
  json["scheduler"] = optimus.scheduler;
  json["exhaustive"] = optimus.exhaustive;
  AddPlan(optimus, optimus.plan.ranked.front(), json);
  AddComparison(optimus, json);
  if (report.memory) json["memory_capacity_gib"] = ToGib(report.memory->capacity);
  json["planning_s"] = optimus.plan.planning_seconds;
  json["judging_s"] = optimus.plan.judging_seconds;
  json["splits_evaluated"] = optimus.plan.splits_evaluated;
  json["plans"] = RankedJson(optimus);
  json["dropped"] = DroppedJson(optimus);
  json["assumptions"] = report.assumptions;
  json["notes"] = report.notes;
  json["wall_s"] = report.wall_s;
  json["peak_memory_mib"] = report.peak_memory_mib;
  return DumpJson(json);
}

}  // namespace optimus::tools
