#pragma once
// The figures of one simulated or measured step: what every output (text, JSON) prints. Times of a
// stage, and the average, are means over GPUs.

#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cost_model.h"
#include "base/units.h"
#include "hw_profiles/profile.h"
#include "schedule/ir/timeline.h"
#include "schedule/step/step.h"
#include "tools/emulation.h"
#include "tools/numerics_report.h"
#include "tools/optimus_report.h"

namespace optimus::tools {

// Where a GPU's step goes: compute + optimizer + bubbles = step.
struct TimeShares {
  double compute_s = 0;
  double optimizer_s = 0;
  std::array<double, ir::kBubbleClassCount> bubbles_s{};
  double idle_s() const { return std::accumulate(bubbles_s.begin(), bubbles_s.end(), 0.0); }
};

struct StageReport {
  int stage = 0;
  std::int64_t gpus = 0;
  TimeShares time;
  std::vector<std::string> layers;  // by model chunk; empty where unknown
};

// MFU = model FLOPs / (step x GPUs x peak), HFU = hardware FLOPs / the same.
struct Efficiency {
  double model_flops = 0;       // 6 N tokens + 12 L h s tokens; attention in full, no recomputation
  double hardware_flops = 0;    // of the kernels run: with recomputation, causal attention halved
  double peak_flops_per_s = 0;  // of one GPU, dense bf16
  double mfu = 0;
  double hfu = 0;
  double aggregate_pflops_per_s = 0;  // model FLOPs / step, all GPUs
};

struct MemoryReport {
  std::vector<step::StageMemory> stages;
  int fullest = 0;  // index into `stages`
  Bytes capacity;   // of one GPU
  bool fits() const { return stages[fullest].total() <= capacity; }
};

// A line of the header: "pipeline", "interleaved 1F1B, 12 model chunks ...".
struct Fact {
  std::string label, text;
};

// How much kernels and collectives slowed each other in this run.
struct InterferenceReport {
  Interference factors;  // applied; 1 where they did not
  std::string reason;    // why they are 1, where the profile or the user says so; else empty
};

// Of a step that was run instead of simulated.
struct MeasuredReport {
  std::string backend;  // "cpu"
  std::string device;   // what computes, by what, in which arithmetic
  std::string hosts;
  int warm_up = 0;
  std::vector<Picoseconds> steps;  // in order; Report::step is the one of median length
  double time_scale = 1;           // real time per time of the report (emulated)
  std::optional<Emulation> emulation;
  bool only_planned = false;  // the profile made the plan, and has no part in what was measured
};

struct Report {
  std::string version;
  std::string file;  // that was simulated or run
  std::string experiment;
  std::vector<Fact> facts;
  std::string profile;       // empty: none was needed
  std::string profile_hash;  // FNV-1a 64 of the profile's deterministic serialization, hex
  std::int64_t gpus = 0;
  std::int32_t global_batch = 0;  // 0 where unknown
  Picoseconds step;
  TimeShares average;
  std::vector<StageReport> stages;
  std::optional<Efficiency> efficiency;  // absent where the work is not known (profiled stages)
  std::string no_efficiency;             // why it was left out although the work is known
  std::optional<MemoryReport> memory;    // likewise
  InterferenceReport interference;
  std::string fidelity, fidelity_reason;
  std::int64_t entities = 0;             // simulated: stages, tensor-parallel groups or GPUs
  std::int64_t operations = 0;           // over all entities
  std::optional<OptimusReport> optimus;  // strategy OPTIMUS
  std::optional<MeasuredReport> measured;
  std::optional<NumericsOutcome> numerics;  // of a run that trained a real model
  std::vector<std::string> assumptions, notes;
  // The only figures that differ from run to run.
  double wall_s = 0;
  double peak_memory_mib = 0;
};

// INTERNAL if the account of some rank does not add up to the step. `costs` may be null where no
// profile is known: then there is neither efficiency nor memory.
absl::StatusOr<Report> MakeReport(const step::Step& step, const hw::ProfileCostModel* costs,
                                  const ir::Timeline& timeline);
inline absl::StatusOr<Report> MakeReport(const step::Step& step, const hw::ProfileCostModel& costs,
                                         const ir::Timeline& timeline) {
  return MakeReport(step, &costs, timeline);
}

// Profiled stages and schedule files say nothing about memory.
bool MemoryIsKnown(const step::Step& step);

std::string ProfileHash(const hw::HardwareProfile& profile);

}  // namespace optimus::tools
