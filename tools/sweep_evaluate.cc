#include "tools/sweep_evaluate.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/exit_codes.h"
#include "tools/out_of_memory.h"
#include "tools/planned_step.h"
#include "tools/report.h"
#include "tools/report_json.h"
#include "tools/simulation.h"
#include "tools/sweep/store/schema.h"

namespace optimus::tools {
namespace {

constexpr double kPercent = 100;
constexpr double kSecondsPerHour = 3600;
constexpr double kSamples = 1000;  // of gpu_hours_per_1000_samples

using Metrics = std::map<std::string, sweep::PointOutcome::Metric>;

void Set(Metrics& metrics, const std::string& name, double value) { metrics[name].set_real(value); }
void SetInteger(Metrics& metrics, const std::string& name, std::int64_t value) {
  metrics[name].set_integer(value);
}
void SetText(Metrics& metrics, const std::string& name, const std::string& value) {
  metrics[name].set_text(value);
}

void AddTimes(const Report& report, Metrics& metrics) {
  const double step_s = ToSeconds(report.step);
  Set(metrics, "iteration_time_s", step_s);
  Set(metrics, "compute_s", report.average.compute_s);
  Set(metrics, "optimizer_s", report.average.optimizer_s);
  Set(metrics, "bubble_s", report.average.idle_s());
  Set(metrics, "bubble_percent", kPercent * report.average.idle_s() / step_s);
  for (int i = 0; i < ir::kBubbleClassCount; ++i) {
    Set(metrics, absl::StrCat(ir::ToString(static_cast<ir::BubbleClass>(i)), "_s"),
        report.average.bubbles_s[static_cast<std::size_t>(i)]);
  }
  SetInteger(metrics, "world_gpus", report.gpus);
  if (report.global_batch == 0) return;
  const double samples = report.global_batch;
  Set(metrics, "samples_per_s", samples / step_s);
  Set(metrics, "gpu_hours_per_1000_samples",
      static_cast<double>(report.gpus) * step_s / kSecondsPerHour / samples * kSamples);
}

void AddOptimus(const OptimusReport& optimus, Metrics& metrics) {
  const colocate::RankedPlan& best = optimus.plan.ranked.front();
  SetText(metrics, "encoder_plans", PlansText(best.encoders));
  Set(metrics, "llm_step_s", ToSeconds(best.llm_step));
  Set(metrics, "fine_efficiency_percent", kPercent * best.fine_efficiency.work);
}

Metrics MetricsOf(const Report& report) {
  Metrics metrics;
  AddTimes(report, metrics);
  if (report.efficiency) {
    Set(metrics, "mfu_percent", kPercent * report.efficiency->mfu);
    Set(metrics, "hfu_percent", kPercent * report.efficiency->hfu);
    Set(metrics, "aggregate_pflop_per_s", report.efficiency->aggregate_pflops_per_s);
  }
  if (report.memory) {
    Set(metrics, "memory_gib",
        ToGib(report.memory->stages[static_cast<std::size_t>(report.memory->fullest)].total()));
    SetInteger(metrics, "fits", report.memory->fits() ? 1 : 0);
  }
  if (report.optimus) AddOptimus(*report.optimus, metrics);
  SetText(metrics, "fidelity", report.fidelity);
  SetInteger(metrics, "operations", report.operations);
  return metrics;
}

std::string ReportText(const Report& report) {
  auto json = nlohmann::ordered_json::parse(ToJson({report}));
  json.erase("wall_s");
  json.erase("peak_memory_mib");
  return json.dump();
}

absl::StatusOr<Report> Simulate(const sweep::Point& point) {
  OPTIMUS_RETURN_IF_ERROR(point.problem);
  OPTIMUS_ASSIGN_OR_RETURN(const Input input, MakeInput(point.experiment, point.profile));
  SimulationOptions options;
  options.compare = false;
  options.in_this_process = true;  // a point's process ends with it
  OPTIMUS_ASSIGN_OR_RETURN(Simulation simulation, Simulation::Prepare(input, options));
  OPTIMUS_RETURN_IF_ERROR(simulation.Run());
  return simulation.MakeReport();
}

const char* StatusOf(const absl::Status& error) {
  if (absl::IsResourceExhausted(error)) return sweep::kStatusOutOfMemory;
  return ExitCode(error) == kExitBadInput ? sweep::kStatusImpossible : sweep::kStatusFailed;
}

}  // namespace

sweep::PointOutcome EvaluatePoint(const sweep::Point& point, bool keep_report) {
  sweep::PointOutcome outcome;
  const absl::StatusOr<Report> report = CatchOutOfMemory(
      "point", "simulating", [&] { return Simulate(point); }, "fewer --jobs leave more memory");
  if (!report.ok()) {
    outcome.set_status(StatusOf(report.status()));
    outcome.set_error(std::string(report.status().message()));
    return outcome;
  }
  outcome.set_status(sweep::kStatusOk);
  const Metrics metrics = MetricsOf(*report);
  for (const sweep::Column& column : sweep::MetricColumns()) {
    const auto found = metrics.find(column.name);
    auto* metric = outcome.add_metrics();
    if (found != metrics.end()) *metric = found->second;
  }
  outcome.set_profile_hash(report->profile_hash);
  if (keep_report) outcome.set_report(ReportText(*report));
  return outcome;
}

}  // namespace optimus::tools
