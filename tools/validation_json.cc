#include "tools/validation_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "tools/json_pieces.h"

namespace optimus::tools {
namespace {

using Json = nlohmann::ordered_json;

// Infinity (only one of the two is there) is null in JSON.
void AddComparison(const validation::Comparison& comparison, Json& json) {
  json["simulated_runner"] = comparison.simulated_runner;
  json["measured_runner"] = comparison.measured_runner;
  json["simulated_s"] = ToSeconds(comparison.simulated_step);
  json["measured_s"] = ToSeconds(comparison.measured_step);
  json["step_error"] = comparison.step_error;
  json["operations_compared"] = comparison.operations_compared;
  json["operations_only_in_one"] = comparison.operations_only_in_one;
  json["shares"] = Json::array();
  for (const validation::ShareComparison& share : comparison.shares) {
    Json one;
    one["name"] = share.name;
    one["simulated_s"] = share.simulated_s;
    one["measured_s"] = share.measured_s;
    one["error_of_step"] = share.error_of_step;
    json["shares"].push_back(std::move(one));
  }
  json["work"] = Json::array();
  for (const validation::WorkComparison& work : comparison.work) {
    Json one;
    one["name"] = work.name;
    one["operations"] = work.operations;
    one["simulated_s"] = work.simulated_s;
    one["measured_s"] = work.measured_s;
    one["error"] = validation::RelativeError(work.simulated_s, work.measured_s);
    json["work"].push_back(std::move(one));
  }
}

Json ExperimentJson(const ValidatedExperiment& experiment, double tolerance) {
  Json json;
  json["experiment"] = experiment.name;
  json["file"] = experiment.file;
  json["strategy"] = experiment.strategy;
  json["within_tolerance"] = Within(experiment.comparison, tolerance);
  json["steps"] = experiment.steps;
  json["median_s"] = experiment.measured.median;
  json["first_quartile_s"] = experiment.measured.first_quartile;
  json["third_quartile_s"] = experiment.measured.third_quartile;
  json["least_s"] = experiment.measured.least;
  json["greatest_s"] = experiment.measured.greatest;
  if (experiment.emulation) AddEmulation(*experiment.emulation, json);
  AddComparison(experiment.comparison, json);
  return json;
}

Json NoiseJson(const MachineNoise& noise) {
  Json json;
  json["kernel"] = noise.kernel;
  json["samples"] = noise.samples;
  json["median_s"] = noise.time.median;
  json["spread"] = noise.time.relative();
  json["drift"] = noise.drift;
  return json;
}

constexpr JsonField kComparisonFields[] = {
    {"version", "of optimus"},
    {"tolerance", "of the step, a share"},
    {"within_tolerance", "whether |step_error| is at most that"},
    {"simulated_runner", "what made the simulated timeline: simgrid, critical_path"},
    {"measured_runner", "what made the measured one: cpu, cuda, emulated"},
    {"simulated_s", "simulated step"},
    {"measured_s", "measured step"},
    {"step_error", "simulated / measured - 1"},
    {"operations_compared", "operations that both timelines hold"},
    {"operations_only_in_one", "the others"},
    {"shares",
     "mean over GPUs of each part of the step (compute, optimizer, each class of bubble): name, "
     "simulated_s, measured_s, error_of_step ((simulated - measured) / measured step)"},
    {"work",
     "kinds of work, longest first, sums over the operations that both hold: name, operations, "
     "simulated_s, measured_s, error; empty without a schedule"},
};

constexpr JsonField kValidationFields[] = {
    {"version", "of optimus"},
    {"backend", "cpu, cuda or emulated"},
    {"device", "what computes, by which library, in which arithmetic"},
    {"hosts", "host names and ranks on each"},
    {"simulator", "what simulated"},
    {"profile", "that was measured beside the steps, and simulated with"},
    {"profile_hash", "of its content (FNV-1a, 64 bits, hexadecimal)"},
    {"rounds", "in which profiling and running took turns"},
    {"warm_up_steps", "at the begin of each round, per experiment"},
    {"tolerance", "of each step, a share"},
    {"least_difference", "pairs that differ by more are ranked"},
    {"within_tolerance", "whether all steps are within it and all pairs are ranked the same"},
    {"conclusive",
     "false where nothing follows from the errors: the noise of the machine (noise.spread) is "
     "above "
     "the tolerance, or emulated ranks were late"},
    {"median_error", "of |step_error| over the experiments"},
    {"largest_error", "step_error of the experiment that is furthest off"},
    {"largest_error_experiment", "its name"},
    {"noise.kernel", "the machine's own noise: a kernel that is always the same"},
    {"noise.samples", "how often it was timed, over the whole run"},
    {"noise.median_s", "its time"},
    {"noise.spread", "between the quartiles, relative to the median"},
    {"noise.drift", "greatest distance of the median of one visit from that of all, relative"},
    {"few_samples", "the medians of the profile that are of few timings, in words; may be absent"},
    {"experiments",
     "for each: experiment, file, strategy, steps, median_s, first_quartile_s, third_quartile_s, "
     "least_s, greatest_s of the measured steps, emulated ones due_s, late_s, compute_short_s, "
     "kept_time "
     "and better_time_scale as `optimus run`, and the names of `optimus validate timelines`. "
     "median_s is measured_s: step_error = simulated_s / median_s - 1"},
    {"ranking",
     "pairs that differ measurably: faster, slower (as measured), measured_ratio, "
     "simulated_ratio, same"},
    {"close_pairs", "pairs that train the same and differ by less: left out of the ranking"},
    {"wall_s", "differs from run to run, as all that is measured"},
};

}  // namespace

std::string ComparisonJson(const validation::Comparison& comparison, double tolerance) {
  Json json;
  json["version"] = OPTIMUS_VERSION;
  json["tolerance"] = tolerance;
  json["within_tolerance"] = Within(comparison, tolerance);
  AddComparison(comparison, json);
  return DumpJson(json);
}

std::string ValidationJson(const Validation& validation) {
  Json json;
  json["version"] = OPTIMUS_VERSION;
  json["backend"] = validation.backend;
  json["device"] = validation.device;
  json["hosts"] = validation.hosts;
  json["simulator"] = validation.simulator;
  json["profile"] = validation.profile;
  json["profile_hash"] = validation.profile_hash;
  json["rounds"] = validation.rounds;
  json["warm_up_steps"] = validation.warm_up;
  json["tolerance"] = validation.tolerance;
  json["least_difference"] = validation.least_difference;
  json["within_tolerance"] = validation.within();
  json["conclusive"] = validation.conclusive();
  json["median_error"] = validation.MedianError();
  if (const ValidatedExperiment* worst = validation.Worst()) {
    json["largest_error"] = worst->comparison.step_error;
    json["largest_error_experiment"] = worst->name;
  }
  if (validation.noise.samples > 0) json["noise"] = NoiseJson(validation.noise);
  if (!validation.few_samples.empty()) json["few_samples"] = validation.few_samples;
  json["experiments"] = Json::array();
  for (const ValidatedExperiment& experiment : validation.experiments) {
    json["experiments"].push_back(ExperimentJson(experiment, validation.tolerance));
  }
  json["ranking"] = Json::array();
  for (const validation::RankedPair& pair : validation.ranking) {
    Json one;
    one["faster"] = pair.faster;
    one["slower"] = pair.slower;
    one["measured_ratio"] = pair.measured_ratio;
    one["simulated_ratio"] = pair.simulated_ratio;
    one["same"] = pair.same;
    json["ranking"].push_back(std::move(one));
  }
  json["close_pairs"] = validation.close_pairs;
  json["wall_s"] = validation.wall_s;
  return DumpJson(json);
}

absl::Span<const JsonField> ComparisonJsonFields() { return kComparisonFields; }
absl::Span<const JsonField> ValidationJsonFields() { return kValidationFields; }

}  // namespace optimus::tools
