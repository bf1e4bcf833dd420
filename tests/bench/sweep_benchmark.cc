// How many points a second a sweep simulates, and what it needs. Figures: docs/benchmarks.md.
//   points_per_s   simulations a second: the pipelines of strong_scaling.textproto on 512 to 24,576
//                  GPUs, folded; by workers
//   rss_mib        resident memory of the sweep's own process at its end

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/sweep/run/engine.h"
#include "tools/sweep_evaluate.h"

namespace optimus {
namespace {

template <class T>
T ValueOrStop(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "sweep_benchmark: %s\n", value.status().ToString().c_str());
  std::exit(3);
}

// Its own pages, now: the kernel's high-water mark would be that of the largest run so far.
double ResidentMib() {
  std::ifstream statm("/proc/self/statm");
  long all = 0, resident = 0;
  statm >> all >> resident;
  return static_cast<double>(resident) * 4096 / (1024.0 * 1024.0);
}

sweep::EngineResult RunOnce(const std::string& sweep_text, int workers, const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/bench.textproto");
  const std::string database = absl::StrCat(folder, "/bench.sqlite");
  std::ofstream(path) << sweep_text;
  for (const char* ending : {"", "-wal", "-shm"}) {
    std::filesystem::remove(absl::StrCat(database, ending));
  }
  sweep::LoadedSweep sweep = ValueOrStop(sweep::LoadedSweep::Load(path));
  sweep::EngineOptions options;
  options.database = database;
  options.workers = workers;
  options.evaluate = [](const sweep::Point& point) { return tools::EvaluatePoint(point, false); };
  return ValueOrStop(sweep::RunSweep(sweep, options));
}

std::string TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "sweep_bench_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) std::exit(3);
  return pattern;
}

// 12 sizes by 3 pipelines by 4 global batches: 144 points.
std::string StrongScaling() {
  return absl::StrCat("base: '", OPTIMUS_SOURCE_DIR,
                      "/examples/paper/strong_3072_megatron.textproto'\n", R"sweep(
    strategies {
      name: "1F1B"
      settings { field: "plan.schedule" value: "ONE_F_ONE_B" }
      settings { field: "plan.model_chunks" value: "1" }
    }
    strategies { name: "Megatron-LM" }
    strategies {
      name: "balanced"
      settings { field: "plan.layout" value: "BALANCED" }
      settings { field: "plan.model_chunks" value: "12" }
    }
    axes {
      field: "hardware.gpus"
      numbers: [512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576]
    }
    derived { field: "plan.data_parallel" expression: "gpus / (pp * tp)" }
# From 8 to 32 micro-batches a pipeline, as in the strong scaling of the paper.
    axes { field: "plan.recompute" values: ["RECOMPUTE_FULL", "RECOMPUTE_SELECTIVE"] }
    axes { field: "batch.sequence_length" numbers: [2048, 4096] }
    derived { field: "batch.global_batch" expression: "dp * 2 * (CASE WHEN gpus <= 1536 THEN 32 WHEN gpus <= 3072 THEN 16 ELSE 8 END)" }
  )sweep");
}

void StrongScalingPoints(benchmark::State& state) {
  const std::string folder = TemporaryFolder();
  double points = 0, seconds = 0;
  for (auto _ : state) {
    const sweep::EngineResult result =
        RunOnce(StrongScaling(), static_cast<int>(state.range(0)), folder);
    if (result.counts.ok != result.survey.points) std::exit(3);
    points += static_cast<double>(result.simulated);
    seconds += result.wall_s;
  }
  state.counters["points"] = points / static_cast<double>(state.iterations());
  state.counters["points_per_s"] = points / seconds;
  state.counters["rss_mib"] = ResidentMib();
  std::filesystem::remove_all(folder);
}
BENCHMARK(StrongScalingPoints)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

// Small points, many of them: what the sweep itself costs and keeps.
void SmallPoints(benchmark::State& state) {
  const std::string folder = TemporaryFolder();
  const std::string text = absl::StrCat(
      "base: '", OPTIMUS_SOURCE_DIR, "/examples/01_two_stage_1f1b.textproto'\n",
      "axes { field: 'profiled.forward_ms' range { from: 1 to: ", state.range(0), " step: 1 } }");
  double points = 0, seconds = 0;
  for (auto _ : state) {
    const sweep::EngineResult result = RunOnce(text, 2, folder);
    points += static_cast<double>(result.simulated);
    seconds += result.wall_s;
  }
  state.counters["points"] = points / static_cast<double>(state.iterations());
  state.counters["points_per_s"] = points / seconds;
  state.counters["rss_mib"] = ResidentMib();
  std::filesystem::remove_all(folder);
}
BENCHMARK(SmallPoints)
    ->Arg(1000)
    ->Arg(10000)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace optimus

BENCHMARK_MAIN();
