#include "tools/quantities.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "tools/paper_data.h"
#include "tools/report_text.h"

namespace optimus::tools {
namespace {

using Value = std::optional<double>;

struct Quantity {
  std::string name;
  const char* unit;
  int digits;  // after the point; kScientific: 1.2345e+18
  std::function<Value(const PaperRun&)> value;
};

constexpr char kPlanning[] = "planning_s";
constexpr int kOneDigit = 1, kTwoDigits = 2, kThreeDigits = 3, kScientific = -1;

// Of the plan that a run of strategy OPTIMUS simulated.
template <class Get>
std::function<Value(const PaperRun&)> OfPlan(Get get) {
  return [get](const PaperRun& run) -> Value {
    if (!run.report.optimus) return std::nullopt;
    return get(run.report.optimus->plan.ranked.front());
  };
}

template <class Get>
std::function<Value(const PaperRun&)> OfOptimus(Get get) {
  return [get](const PaperRun& run) -> Value {
    if (!run.report.optimus) return std::nullopt;
    return get(*run.report.optimus);
  };
}

template <class Get>
std::function<Value(const PaperRun&)> OfEfficiency(Get get) {
  return [get](const PaperRun& run) -> Value {
    if (!run.report.efficiency) return std::nullopt;
    return get(*run.report.efficiency);
  };
}

template <class Get>
std::function<Value(const PaperRun&)> OfLayers(double per_second, Get get) {
  return [per_second, get](const PaperRun& run) -> Value {
    if (!run.layers) return std::nullopt;
    return per_second * ToSeconds(get(*run.layers));
  };
}

void AddStep(std::vector<Quantity>& all) {
  all.push_back({"iteration_time_s", "s", kThreeDigits,
                 [](const PaperRun& run) { return ToSeconds(run.report.step); }});
  all.push_back({"mfu_percent", "%", kOneDigit,
                 OfEfficiency([](const Efficiency& e) { return 100 * e.mfu; })});
  all.push_back({"hfu_percent", "%", kOneDigit,
                 OfEfficiency([](const Efficiency& e) { return 100 * e.hfu; })});
  all.push_back({"throughput_pflop_per_s", "PFLOP/s", kTwoDigits,
                 OfEfficiency([](const Efficiency& e) { return e.aggregate_pflops_per_s; })});
  all.push_back({"model_flops", "FLOP", kScientific,
                 OfEfficiency([](const Efficiency& e) { return e.model_flops; })});
  all.push_back({"memory_gib", "GiB", kOneDigit, [](const PaperRun& run) -> Value {
                   const auto& memory = run.report.memory;
                   if (!memory) return std::nullopt;
                   return ToGib(memory->stages[memory->fullest].total());
                 }});
}

void AddBubbles(std::vector<Quantity>& all) {
  const auto add = [&](const std::string& name, auto seconds) {
    all.push_back({absl::StrCat("bubble_", name, "_s"), "s", kThreeDigits,
                   [seconds](const PaperRun& run) { return seconds(run.report.average); }});
    all.push_back(
        {absl::StrCat("bubble_", name, "_percent"), "%", kOneDigit, [seconds](const PaperRun& run) {
           return 100 * seconds(run.report.average) / ToSeconds(run.report.step);
         }});
  };
  add("total", [](const TimeShares& time) { return time.idle_s(); });
  for (int i = 0; i < ir::kBubbleClassCount; ++i) {
    add(ir::ToString(static_cast<ir::BubbleClass>(i)),
        [i](const TimeShares& time) { return time.bubbles_s[static_cast<std::size_t>(i)]; });
  }
}

void AddPlan(std::vector<Quantity>& all) {
  using Plan = colocate::RankedPlan;
  const auto add = [&](const char* name, auto get) {
    all.push_back(
        {name, "s", kThreeDigits, OfPlan([get](const Plan& p) { return ToSeconds(get(p)); })});
  };
  add("predicted_iteration_time_s", [](const Plan& p) { return p.predicted; });
  add("llm_iteration_time_s", [](const Plan& p) { return p.llm_step; });
  add("coarse_iteration_time_s", [](const Plan& p) { return p.coarse; });
  add("work_bound_s", [](const Plan& p) { return p.bounds.work; });
  add("fluid_bound_s", [](const Plan& p) { return p.bounds.fluid; });
  add("delta_f_s", [](const Plan& p) { return p.delta_f; });
  add("delta_b_s", [](const Plan& p) { return p.delta_b; });
  add("encoder_data_parallel_s",
      [](const Plan& p) { return p.encoder_data_parallel.value_or(Picoseconds(0)); });
  const auto percent = [&](const char* name, auto get) {
    all.push_back({name, "%", kOneDigit, OfPlan([get](const Plan& p) { return 100 * get(p); })});
  };
  percent("eff_work_coarse_percent", [](const Plan& p) { return p.coarse_efficiency.work; });
  percent("eff_work_fine_percent", [](const Plan& p) { return p.fine_efficiency.work; });
  percent("eff_time_coarse_percent", [](const Plan& p) { return p.coarse_efficiency.time; });
  percent("eff_time_fine_percent", [](const Plan& p) { return p.fine_efficiency.time; });
  percent("gap_left_percent", [](const Plan& p) { return GapLeft(p); });
}

void AddOptimus(std::vector<Quantity>& all) {
  using R = OptimusReport;
  all.push_back({"step_over_fluid_bound", "x", kThreeDigits, OfOptimus([](const R& r) {
                   return ToSeconds(r.step.simulated) /
                          ToSeconds(r.plan.ranked.front().bounds.fluid);
                 })});
  all.push_back({"prediction_error_percent", "%", kTwoDigits,
                 OfOptimus([](const R& r) { return r.step.difference_percent(); })});
  all.push_back({"contention_effect_s", "s", kThreeDigits,
                 OfOptimus([](const R& r) { return ToSeconds(r.step.contention()); })});
  all.push_back({"interference_effect_s", "s", kThreeDigits,
                 OfOptimus([](const R& r) { return ToSeconds(r.step.interference()); })});
  all.push_back({kPlanning, "s", kThreeDigits,
                 OfOptimus([](const R& r) { return r.plan.planning_seconds; })});
}

void AddLayers(std::vector<Quantity>& all) {
  all.push_back({"encoder_layer_forward_ms", "ms", kThreeDigits,
                 OfLayers(1e3, [](const LayerTimes& t) { return t.encoder_forward; })});
  all.push_back({"encoder_layer_backward_ms", "ms", kThreeDigits,
                 OfLayers(1e3, [](const LayerTimes& t) { return t.encoder_backward; })});
  all.push_back({"llm_collective_us", "us", kOneDigit,
                 OfLayers(1e6, [](const LayerTimes& t) { return t.llm_collective; })});
}

const std::vector<Quantity>& Plain() {
  static const std::vector<Quantity> quantities = [] {
    std::vector<Quantity> all;
    AddStep(all);
    AddBubbles(all);
    AddPlan(all);
    AddOptimus(all);
    AddLayers(all);
    return all;
  }();
  return quantities;
}

const Quantity* FindPlain(const std::string& name) {
  const auto found = std::find_if(Plain().begin(), Plain().end(),
                                  [&](const Quantity& q) { return q.name == name; });
  return found == Plain().end() ? nullptr : &*found;
}

constexpr char kSpeedUp[] = "speedup_over_";
constexpr char kReduction[] = "reduction_over_";
constexpr char kReductionOverMegatron[] = "reduction_percent";

}  // namespace

std::string ReferenceMethod(const std::string& quantity) {
  if (quantity == kReductionOverMegatron) return "megatron";
  absl::string_view name = quantity;
  const bool reduction = absl::ConsumePrefix(&name, kReduction);
  if (reduction && !absl::ConsumeSuffix(&name, "_percent")) return "";
  if (!reduction && !absl::ConsumePrefix(&name, kSpeedUp)) return "";
  const std::string method(name);
  const bool known = std::any_of(Methods().begin(), Methods().end(),
                                 [&](const Method& m) { return m.name == method; });
  return known ? method : "";
}

bool IsQuantity(const std::string& name) {
  return FindPlain(name) != nullptr || !ReferenceMethod(name).empty();
}

std::string QuantityNames() {
  std::vector<std::string> names;
  for (const Quantity& quantity : Plain()) names.push_back(quantity.name);
  return absl::StrCat(absl::StrJoin(names, ", "), ", ", kReductionOverMegatron, ", ", kSpeedUp,
                      "METHOD, ", kReduction, "METHOD_percent");
}

std::string UnitOf(const std::string& quantity) {
  if (const Quantity* plain = FindPlain(quantity); plain != nullptr) return plain->unit;
  return absl::StartsWith(quantity, kSpeedUp) ? "x" : "%";
}

bool SameUnit(const std::string& given, const std::string& unit) {
  return given.empty() || given == unit || (given == "percent" && unit == "%");
}

bool HasError(const std::string& quantity) { return quantity != kPlanning; }

std::string FormatQuantity(const std::string& quantity, double value) {
  const Quantity* plain = FindPlain(quantity);
  const int digits = plain != nullptr          ? plain->digits
                     : UnitOf(quantity) == "x" ? kThreeDigits
                                               : kOneDigit;
  return digits == kScientific ? absl::StrFormat("%.4e", value)
                               : absl::StrFormat("%.*f", digits, value);
}

std::optional<double> Evaluate(const std::string& quantity, const PaperRun& run,
                               const PaperRun* reference) {
  if (const Quantity* plain = FindPlain(quantity); plain != nullptr) return plain->value(run);
  if (reference == nullptr) return std::nullopt;
  return absl::StartsWith(quantity, kSpeedUp) ? SpeedUp(reference->report, run.report)
                                              : ReductionPercent(reference->report, run.report);
}

}  // namespace optimus::tools
