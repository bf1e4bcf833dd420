#include "tools/llm_search_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "schedule/ir/bubbles.h"
#include "tools/report.h"

namespace optimus::tools {
namespace {

using Json = nlohmann::json;

// Smaller differences explain nothing.
constexpr double kWorthNaming = 0.005;
constexpr std::size_t kMostReasons = 5;

double& Of(StepParts& parts, StepPart part) { return parts[static_cast<std::size_t>(part)]; }

StepPart PartOf(const ir::Operation& op) {
  if (op.tag.phase == Phase::kRecompute) return StepPart::kRecompute;
  return op.tag.module > ir::kLlmModule ? StepPart::kEncoder : StepPart::kLlmCompute;
}

StepPart PartOf(ir::BubbleClass bubble) {
  switch (bubble) {
    case ir::BubbleClass::kDpAllGather:
      return StepPart::kDpAllGather;
    case ir::BubbleClass::kDpReduceScatter:
      return StepPart::kDpReduceScatter;
    case ir::BubbleClass::kPpWarmup:
      return StepPart::kWarmUp;
    case ir::BubbleClass::kPpCooldown:
      return StepPart::kCoolDown;
    case ir::BubbleClass::kPpOther:
      return StepPart::kPipelineOther;
    case ir::BubbleClass::kTp:
      break;
  }
  return StepPart::kTensorParallel;
}

// Kernels as long as they take alone, mean over programs: each stands for as many GPUs.
void AddKernels(const Simulation& simulation, StepParts& parts) {
  const ir::Schedule& schedule = simulation.step().schedule;
  std::vector<double> seconds;
  seconds.reserve(schedule.kernels.size());
  for (const Kernel& kernel : schedule.kernels) {
    seconds.push_back(ToSeconds(simulation.costs().KernelTime(kernel)));
  }
  const auto programs = static_cast<double>(schedule.programs.size());
  for (const ir::Program& program : schedule.programs) {
    for (const ir::Operation& op : program.operations) {
      if (!ir::IsForwardOrBackwardCompute(op)) continue;
      Of(parts, PartOf(op)) += seconds[static_cast<std::size_t>(op.work)] / programs;
    }
  }
}

StepParts PartsOf(const Simulation& simulation, const Report& report) {
  StepParts parts{};
  AddKernels(simulation, parts);
  double alone = 0;
  for (const double seconds : parts) alone += seconds;
  Of(parts, StepPart::kSlowDown) = report.average.compute_s - alone;
  for (std::size_t i = 0; i < report.average.bubbles_s.size(); ++i) {
    Of(parts, PartOf(static_cast<ir::BubbleClass>(i))) += report.average.bubbles_s[i];
  }
  Of(parts, StepPart::kOptimizer) = report.average.optimizer_s;
  return parts;
}

std::string ScheduleName(const step::Plan& plan) {
  if (plan.schedule() == step::Plan::ONE_F_ONE_B) return "1F1B";
  if (plan.schedule() == step::Plan::INTERLEAVED) return "interleaved";
  return step::Plan::PipelineSchedule_Name(plan.schedule());
}

void AddOptimus(const OptimusReport& optimus, SearchedPlan& plan) {
  const colocate::RankedPlan& best = optimus.plan.ranked.front();
  plan.encoders = PlansText(best.encoders);
  plan.warm_up = WarmUpText(best.warm_up);
  plan.llm_step = best.llm_step;
}

// By number: names would have to be read back.
Json CandidateJson(const llm_search::Candidate& candidate) {
  return {static_cast<int>(candidate.strategy),
          candidate.data_parallel,
          candidate.pipeline_parallel,
          candidate.tensor_parallel,
          candidate.model_chunks,
          candidate.micro_batch,
          static_cast<int>(candidate.recompute)};
}

llm_search::Candidate ReadCandidate(const Json& json) {
  llm_search::Candidate candidate;
  candidate.strategy = static_cast<step::Plan::Strategy>(json.at(0).get<int>());
  candidate.data_parallel = json.at(1);
  candidate.pipeline_parallel = json.at(2);
  candidate.tensor_parallel = json.at(3);
  candidate.model_chunks = json.at(4);
  candidate.micro_batch = json.at(5);
  candidate.recompute = static_cast<step::Plan::Recompute>(json.at(6).get<int>());
  return candidate;
}

}  // namespace

const char* PartName(StepPart part) {
  static constexpr const char* kNames[kStepPartCount] = {"LLM compute",
                                                         "recomputation",
                                                         "encoder compute",
                                                         "slow-down of kernels by collectives",
                                                         "waiting for tensor parallelism",
                                                         "parameter all-gather",
                                                         "gradient reduce-scatter",
                                                         "pipeline warm-up",
                                                         "pipeline cool-down",
                                                         "other waiting for the pipeline",
                                                         "optimizer"};
  return kNames[static_cast<std::size_t>(part)];
}

const char* PartJsonName(StepPart part) {
  static constexpr const char* kNames[kStepPartCount] = {
      "llm_compute_s",  "recompute_s",     "encoder_compute_s",   "slow_down_s",
      "tp_s",           "dp_all_gather_s", "dp_reduce_scatter_s", "pp_warm_up_s",
      "pp_cool_down_s", "pp_other_s",      "optimizer_s"};
  return kNames[static_cast<std::size_t>(part)];
}

absl::StatusOr<SearchedPlan> DescribePlan(const Simulation& simulation) {
  OPTIMUS_ASSIGN_OR_RETURN(const Report report, simulation.MakeReport());
  const step::Experiment& experiment = simulation.step().experiment;
  SearchedPlan plan;
  plan.candidate = llm_search::CandidateOf(experiment);
  plan.strategy = step::Plan::Strategy_Name(experiment.plan().strategy());
  plan.schedule = ScheduleName(experiment.plan());
  plan.layout = step::Plan::Layout_Name(experiment.plan().layout());
  if (report.optimus) AddOptimus(*report.optimus, plan);
  plan.step = report.step;
  if (report.efficiency) plan.mfu = report.efficiency->mfu;
  if (report.memory) {
    const auto fullest = static_cast<std::size_t>(report.memory->fullest);
    plan.memory_gib = ToGib(report.memory->stages[fullest].total());
    plan.fits = report.memory->fits();
  }
  plan.parts = PartsOf(simulation, report);
  return plan;
}

SearchedPlan ImpossiblePlan(const step::Experiment& experiment, const std::string& why) {
  SearchedPlan plan;
  plan.candidate = llm_search::CandidateOf(experiment);
  plan.strategy = step::Plan::Strategy_Name(experiment.plan().strategy());
  plan.schedule = ScheduleName(experiment.plan());
  plan.layout = step::Plan::Layout_Name(experiment.plan().layout());
  plan.fits = false;
  plan.impossible = why;
  return plan;
}

std::string EncodePlan(const SearchedPlan& plan) {
  Json json;
  json["candidate"] = CandidateJson(plan.candidate);
  json["strategy"] = plan.strategy;
  json["schedule"] = plan.schedule;
  json["layout"] = plan.layout;
  json["encoders"] = plan.encoders;
  json["warm_up"] = plan.warm_up;
  json["step"] = plan.step.value();
  if (plan.llm_step) json["llm_step"] = plan.llm_step->value();
  if (plan.mfu) json["mfu"] = *plan.mfu;
  json["memory_gib"] = plan.memory_gib;
  json["fits"] = plan.fits;
  json["parts"] = plan.parts;
  return json.dump();
}

absl::StatusOr<SearchedPlan> DecodePlan(const std::string& bytes) {
  const Json json = Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InternalError("a simulated plan came back in pieces");
  SearchedPlan plan;
  plan.candidate = ReadCandidate(json.at("candidate"));
  plan.strategy = json.at("strategy");
  plan.schedule = json.at("schedule");
  plan.layout = json.at("layout");
  plan.encoders = json.at("encoders");
  plan.warm_up = json.at("warm_up");
  plan.step = Picoseconds(json.at("step").get<std::int64_t>());
  if (json.contains("llm_step")) {
    plan.llm_step = Picoseconds(json.at("llm_step").get<std::int64_t>());
  }
  if (json.contains("mfu")) plan.mfu = json.at("mfu").get<double>();
  plan.memory_gib = json.at("memory_gib");
  plan.fits = json.at("fits");
  plan.parts = json.at("parts").get<StepParts>();
  return plan;
}

std::string WhyText(const SearchedPlan& plan, const SearchedPlan& other) {
  std::vector<std::pair<double, std::string>> reasons;
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    const double difference = plan.parts[i] - other.parts[i];
    if (std::fabs(difference) < kWorthNaming * ToSeconds(plan.step)) continue;
    reasons.emplace_back(
        -std::fabs(difference),
        absl::StrFormat("%.3f s %s %s", std::fabs(difference), difference < 0 ? "less" : "more",
                        PartName(static_cast<StepPart>(i))));
  }
  if (reasons.empty()) return "no part of the step differs by half a percent of it";
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (reasons.size() > kMostReasons) reasons.resize(kMostReasons);
  return absl::StrJoin(reasons, ", ", [](std::string* out, const auto& reason) {
    absl::StrAppend(out, reason.second);
  });
}

}  // namespace optimus::tools
