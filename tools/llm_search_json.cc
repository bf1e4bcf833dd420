#include "tools/llm_search_json.h"

#include "tools/json_pieces.h"

namespace optimus::tools {
namespace {

using Json = nlohmann::ordered_json;

Json PartsJson(const StepParts& parts) {
  Json json;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    json[PartJsonName(static_cast<StepPart>(i))] = parts[i];
  }
  return json;
}

Json PlanJson(const LlmSearchReport& report, const SearchedPlan& plan) {
  Json json;
  json["own"] = plan.own;
  json["fits"] = plan.fits;
  json["strategy"] = plan.strategy;
  json["data_parallel"] = plan.candidate.data_parallel;
  json["pipeline_parallel"] = plan.candidate.pipeline_parallel;
  json["tensor_parallel"] = plan.candidate.tensor_parallel;
  json["model_chunks"] = plan.candidate.model_chunks;
  json["micro_batch"] = plan.candidate.micro_batch;
  json["recompute"] = llm_search::RecomputeName(plan.candidate.recompute);
  json["schedule"] = plan.schedule;
  json["layout"] = plan.layout;
  if (!plan.impossible.empty()) {
    json["impossible"] = plan.impossible;
    return json;
  }
  if (!plan.encoders.empty()) json["encoder_plan"] = plan.encoders;
  if (!plan.warm_up.empty()) json["warm_up"] = plan.warm_up;
  json["iteration_time_s"] = ToSeconds(plan.step);
  if (plan.llm_step) json["llm_iteration_time_s"] = ToSeconds(*plan.llm_step);
  if (plan.mfu) json["mfu"] = *plan.mfu;
  json["memory_gib"] = plan.memory_gib;
  if (plan.bound > Picoseconds(0)) json["bound_s"] = ToSeconds(plan.bound);
  json["time"] = PartsJson(plan.parts);
  if (&plan != &report.plans.front()) json["why"] = WhyText(report.plans.front(), plan);
  return json;
}

Json PlansJson(const LlmSearchReport& report, int top) {
  Json plans = Json::array();
  for (std::size_t i = 0; i < report.plans.size(); ++i) {
    if (i < static_cast<std::size_t>(top)) plans.push_back(PlanJson(report, report.plans[i]));
  }
  return plans;
}

Json SearchedJson(const LlmSearchReport& report) {
  Json all = Json::array();
  for (const llm_search::SearchedValues& values : report.values) {
    Json recompute = Json::array();
    for (const step::Plan::Recompute kind : values.recompute) {
      recompute.push_back(llm_search::RecomputeName(kind));
    }
    all.push_back({{"strategy", step::Plan::Strategy_Name(values.strategy)},
                   {"combinations", values.combinations},
                   {"tensor_parallel", values.tensor_parallel},
                   {"pipeline_parallel", values.pipeline_parallel},
                   {"data_parallel", values.data_parallel},
                   {"model_chunks", values.model_chunks},
                   {"micro_batch", values.micro_batch},
                   {"recompute", recompute},
                   {"layout", step::Plan::Layout_Name(values.layout)}});
  }
  return all;
}

Json ImpossibleJson(const LlmSearchReport& report) {
  Json groups = Json::array();
  for (const ImpossibleGroup& group : report.impossible) {
    groups.push_back(
        {{"field", group.field}, {"combinations", group.count}, {"example", group.example}});
  }
  return groups;
}

void AddCounts(const LlmSearchReport& report, Json& json) {
  json["combinations"] = report.combinations;
  json["searched"] = SearchedJson(report);
  json["impossible"] = ImpossibleJson(report);
  json["impossible_in_planning"] = report.impossible_in_planning;
  json["too_large"] = report.too_large;
  if (report.too_large > 0) {
    json["least_memory_gib"] = report.least_memory_gib;
    json["least_memory_plan"] = report.least_memory_plan;
  }
  json["too_large_with_encoders"] = report.too_large_with_encoders;
  json["pruned"] = report.pruned;
  json["simulated"] = report.simulated;
  json["own_is_combination"] = report.own_is_combination;
  json["proven"] = !report.open.has_value();
  if (!report.open) return;
  json["open"] = {{"combinations", report.open->count},
                  {"plan", report.open->least},
                  {"bound_s", ToSeconds(report.open->bound)}};
}

constexpr JsonField kFields[] = {
    {"version", "of optimus"},
    {"experiment", "name of the experiment"},
    {"profile", "name of the hardware profile"},
    {"profile_hash", "of the profile's content (FNV-1a, 64 bits, hexadecimal)"},
    {"gpus", "GPUs of every plan"},
    {"global_batch", "samples of a step"},
    {"scheduler", "paper or list, of the plans of strategy OPTIMUS; only with encoders"},
    {"memory_capacity_gib", "memory of one GPU, by the profile"},
    {"memory_limit_gib", "what the search goes by: the same, or --memory-limit where that is less"},
    {"search_time_limit_s", "--search-time"},
    {"combinations", "of strategy, DP, PP, TP, V, micro-batch and recomputation"},
    {"searched",
     "by strategy, the values that the combinations are made of: strategy, combinations, "
     "tensor_parallel, pipeline_parallel, data_parallel, model_chunks, micro_batch, recompute, "
     "layout; V depends on PP, the micro-batch on DP"},
    {"impossible",
     "combinations that no experiment can have, by the field that says so: field, combinations, "
     "example (what the first one is refused with); of an own plan that is impossible: why"},
    {"impossible_in_planning", "those that were refused only when the plan was made"},
    {"too_large", "combinations that do not fit in a GPU's memory"},
    {"least_memory_gib", "of those, the smallest need"},
    {"least_memory_plan", "and whose it is"},
    {"too_large_with_encoders", "those for which only planning found that no encoder plan fits"},
    {"pruned", "combinations whose lower bound is above the best step"},
    {"simulated", "combinations that were simulated and count"},
    {"own_is_combination", "whether the experiment's own plan is one of the combinations"},
    {"proven", "whether no other of these combinations can be better than the best"},
    {"open.combinations", "where it is not: combinations that may be better"},
    {"open.plan", "the one with the least bound"},
    {"open.bound_s", "its bound"},
    {"plans",
     "the best, shortest step first; each with the names from own to why, which are also those of "
     "own_plan"},
    {"own", "whether it is the experiment's own plan"},
    {"fits", "whether it can be and fits in memory; always, of plans"},
    {"strategy", "OPTIMUS, PIPELINE, ..."},
    {"data_parallel", "DP"},
    {"pipeline_parallel", "PP"},
    {"tensor_parallel", "TP"},
    {"model_chunks", "V; 1 is 1F1B"},
    {"micro_batch", "samples"},
    {"recompute", "none, selective or full"},
    {"schedule", "of the pipeline: 1F1B, interleaved, ..."},
    {"layout", "EQUAL_LAYERS, BALANCED, ...; PIPELINE with encoders is searched as BALANCED"},
    {"encoder_plan", "strategy OPTIMUS: pipeline and tensor parallelism of every encoder"},
    {"warm_up", "strategy OPTIMUS: of the LLM's pipeline"},
    {"iteration_time_s", "simulated step"},
    {"llm_iteration_time_s", "strategy OPTIMUS: step of the LLM alone"},
    {"mfu", "model FLOPs utilisation; a share"},
    {"memory_gib", "of the fullest GPU"},
    {"bound_s", "lower bound on the step; none of an own plan that is not among the combinations"},
    {"time.llm_compute_s",
     "parts of the step, mean over GPUs, which sum to it: kernels of the LLM as long as they take "
     "alone, without recomputation"},
    {"time.recompute_s", "recomputation, of LLM and encoders"},
    {"time.encoder_compute_s", "kernels of the encoders"},
    {"time.slow_down_s", "what collectives at the same time and slow GPUs add to all kernels"},
    {"time.tp_s", "idle: waiting for tensor-parallel collectives"},
    {"time.dp_all_gather_s", "idle: parameter all-gather"},
    {"time.dp_reduce_scatter_s", "idle: gradient reduce-scatter"},
    {"time.pp_warm_up_s", "idle: pipeline warm-up"},
    {"time.pp_cool_down_s", "idle: pipeline cool-down"},
    {"time.pp_other_s", "idle: other waiting for the pipeline"},
    {"time.optimizer_s", "optimizer"},
    {"why", "how the time of the best plan differs from this one's; of every plan but the best"},
    {"own_plan", "the experiment's own plan"},
    {"notes", "what else is to be known"},
    {"wall_s", "wall time; differs from run to run"},
    {"peak_memory_mib", "peak resident memory; differs from run to run"},
};

}  // namespace

std::string LlmSearchJson(const LlmSearchReport& report, int top) {
  Json json;
  json["version"] = report.version;
  json["experiment"] = report.experiment;
  json["profile"] = report.profile;
  json["profile_hash"] = report.profile_hash;
  json["gpus"] = report.gpus;
  json["global_batch"] = report.global_batch;
  if (!report.scheduler.empty()) json["scheduler"] = report.scheduler;
  json["memory_capacity_gib"] = report.profile_capacity_gib;
  json["memory_limit_gib"] = report.capacity_gib;
  json["search_time_limit_s"] = report.search_time_s;
  AddCounts(report, json);
  json["plans"] = PlansJson(report, top);
  json["own_plan"] = PlanJson(report, report.own);
  json["notes"] = report.notes;
  json["wall_s"] = report.wall_s;
  json["peak_memory_mib"] = report.peak_memory_mib;
  return DumpJson(json);
}

absl::Span<const JsonField> LlmSearchJsonFields() { return kFields; }

}  // namespace optimus::tools
