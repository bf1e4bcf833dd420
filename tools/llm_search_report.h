#pragma once
// What `optimus plan --search-llm` found: what every output (text, JSON) prints.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "schedule/llm_search/candidate.h"
#include "schedule/llm_search/examine.h"
#include "schedule/llm_search/searched_values.h"
#include "tools/simulation.h"

namespace optimus::tools {

// Where a step goes, mean over GPUs; the parts sum to the step. Kernels count as long as they take
// alone; what contention and slow GPUs add to them is a part of its own.
enum class StepPart : std::uint8_t {
  kLlmCompute,  // without recomputation
  kRecompute,   // of LLM and encoders
  kEncoder,     // without recomputation
  kSlowDown,
  kTensorParallel,
  kDpAllGather,
  kDpReduceScatter,
  kWarmUp,
  kCoolDown,
  kPipelineOther,
  kOptimizer,
};
inline constexpr int kStepPartCount = 11;
const char* PartName(StepPart part);                   // "pipeline warm-up"
const char* PartJsonName(StepPart part);               // "pp_warm_up_s"
using StepParts = std::array<double, kStepPartCount>;  // seconds

// A plan of the LLM (and of its encoders) that was simulated.
struct SearchedPlan {
  llm_search::Candidate candidate;
  std::string strategy, schedule;  // "OPTIMUS", "interleaved 1F1B"
  std::string layout;              // "EQUAL_LAYERS"
  std::string encoders;  // "PP 1 x TP 4", of several "PP 1 x TP 4 + PP 2 x TP 8"; or empty
  std::string warm_up;   // of OPTIMUS, as planned
  Picoseconds step;
  std::optional<Picoseconds> llm_step;  // OPTIMUS: T_llm
  std::optional<double> mfu;            // a share
  double memory_gib = 0;                // of the fullest GPU
  bool fits = true;
  // Why there is no such plan; then `step` and all that is simulated is 0. Of the experiment's own.
  std::string impossible;
  Picoseconds bound;  // lower bound on `step`; 0: none was made (the experiment's own plan)
  StepParts parts{};
  bool own = false;  // of the experiment as it is
};

absl::StatusOr<SearchedPlan> DescribePlan(const Simulation& simulation);
// Through a pipe.
std::string EncodePlan(const SearchedPlan& plan);
absl::StatusOr<SearchedPlan> DecodePlan(const std::string& bytes);

// Of a plan that was not simulated: what it would be, and why it is impossible.
SearchedPlan ImpossiblePlan(const step::Experiment& experiment, const std::string& why);

// "0.310 s less pipeline warm-up, 0.120 s more optimizer": of `plan` against `other`, the largest
// differences first, without those below half a percent of the step.
std::string WhyText(const SearchedPlan& plan, const SearchedPlan& other);

// Combinations that cannot be, by the field that says so.
struct ImpossibleGroup {
  std::string field;
  std::int64_t count = 0;
  std::string example;  // the first one's reason
};

// Combinations that were not evaluated though they might be better.
struct OpenSearch {
  std::int64_t count = 0;
  std::string least;  // the one with the least bound
  Picoseconds bound;  // its
};

struct LlmSearchReport {
  std::string version, file, experiment, profile, profile_hash;
  std::int64_t gpus = 0;
  std::int32_t global_batch = 0;
  double capacity_gib = 0;          // memory of one GPU that the search goes by
  double profile_capacity_gib = 0;  // that the profile gives; more under --memory-limit
  std::string scheduler;            // of OPTIMUS; empty without encoders
  std::int64_t combinations = 0;
  std::vector<llm_search::SearchedValues> values;  // that they are made of, by strategy
  std::vector<ImpossibleGroup> impossible;
  std::int64_t impossible_in_planning = 0;   // found out when the plan was made
  std::int64_t too_large = 0;                // for the GPUs' memory
  std::int64_t too_large_with_encoders = 0;  // found out when the encoders were planned
  double least_memory_gib = 0;               // of those that are too large, the smallest need
  std::string least_memory_plan;
  std::int64_t pruned = 0;
  std::int64_t simulated = 0;       // that count; of the combinations
  bool own_is_combination = false;  // the experiment's own plan is among them
  std::optional<OpenSearch> open;   // absent: the best plan is proven to be the best
  double search_time_s = 0;         // limit that was set
  std::vector<SearchedPlan> plans;  // best first; `own` among them where it fits
  SearchedPlan own;                 // of the experiment
  std::vector<std::string> notes;
  double wall_s = 0;
  double peak_memory_mib = 0;
};

}  // namespace optimus::tools
