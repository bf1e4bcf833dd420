// Benchmarks of a whole simulated step, and of planning one. Simulations report operations per
// second of the simulated GPUs and the peak memory of the simulating process; planning reports the
// step it predicts, the splits it tried and the peak memory of a process that plans once. Table of
// results: docs/benchmarks.md.

#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "schedule/colocate/optimus.h"
#include "tests/run_experiment.h"

namespace optimus {
namespace {

constexpr char kExperiment[] = OPTIMUS_SOURCE_DIR "/examples/paper/strong_3072_balanced.textproto";
constexpr int kGpusPerReplica = 64;  // pipeline 8 x tensor 8

[[noreturn]] void Stop(const absl::Status& status) {
  std::fprintf(stderr, "optimus_bench: %s\n", status.ToString().c_str());
  std::exit(3);
}

template <class T>
T ValueOrStop(absl::StatusOr<T> value) {
  if (!value.ok()) {
    Stop(value.status());
  }
  return *std::move(value);
}

// strong_3072 balanced (V = 12, 16 micro-batches) on `gpus` GPUs: the number of replicas and the
// batch change, the work of one replica does not.
step::Experiment ExperimentOn(int gpus) {
  step::Experiment experiment = ValueOrStop(step::LoadExperiment(kExperiment));
  const int replicas = gpus / kGpusPerReplica;
  const int samples = experiment.batch().global_batch() / experiment.plan().data_parallel();
  experiment.mutable_batch()->set_global_batch(samples * replicas);
  experiment.mutable_plan()->set_data_parallel(replicas);
  experiment.mutable_hardware()->set_gpus(gpus);
  experiment.mutable_hardware()->set_cluster_gpus(0);
  return experiment;
}

const testing::Built& BuiltFor(int gpus) {
  static std::map<int, testing::Built> built;
  auto found = built.find(gpus);
  if (found == built.end()) {
    found = built.emplace(gpus, ValueOrStop(testing::Build(ExperimentOn(gpus)))).first;
  }
  return found->second;
}

void Simulate(benchmark::State& state, sim::Fidelity fidelity) {
  const testing::Built& built = BuiltFor(static_cast<int>(state.range(0)));
  sim::Options options;
  options.fidelity = fidelity;
  std::int64_t operations = 0;
  double peak_mib = 0, step_s = 0;
  for (auto _ : state) {
    sim::SimGridRunner runner(*built.costs, options);
    const ir::Timeline timeline = ValueOrStop(runner.Run(built.step.schedule));
    operations += timeline.operations;
    step_s = ToSeconds(timeline.step);
    peak_mib = static_cast<double>(runner.stats().peak_rss_bytes) / (1024.0 * 1024.0);
  }
  state.counters["ops/s"] =
      benchmark::Counter(static_cast<double>(operations), benchmark::Counter::kIsRate);
  state.counters["peak_MiB"] = peak_mib;
  state.counters["step_s"] = step_s;
}

void BM_Folded(benchmark::State& state) { Simulate(state, sim::Fidelity::kFolded); }
void BM_Group(benchmark::State& state) { Simulate(state, sim::Fidelity::kGroup); }
void BM_Gpu(benchmark::State& state) { Simulate(state, sim::Fidelity::kGpu); }

void BM_BuildStep(benchmark::State& state) {
  const step::Experiment experiment = ExperimentOn(static_cast<int>(state.range(0)));
  const hw::ProfileCostModel costs(ValueOrStop(step::LoadExperimentProfile(experiment)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(ValueOrStop(step::BuildStep(experiment, costs)));
  }
}

void BM_Validate(benchmark::State& state) {
  const testing::Built& built = BuiltFor(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    if (absl::Status status = ir::Validate(built.step.schedule); !status.ok()) {
      Stop(status);
    }
  }
}

void BM_CriticalPath(benchmark::State& state) {
  const testing::Built& built = BuiltFor(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    ir::CriticalPathRunner runner(*built.costs);
    benchmark::DoNotOptimize(ValueOrStop(runner.Run(built.step.schedule)));
  }
}

// Peak memory of a child process that does `work`, in MiB. It starts as a copy of this process, so
// run one benchmark alone (--benchmark_filter) for a figure without what others left behind.
template <class Work>
double PeakMib(Work work) {
  const pid_t child = fork();
  if (child < 0) {
    Stop(absl::InternalError("fork failed"));
  }
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child || status != 0) {
    Stop(absl::InternalError("the planning process failed"));
  }
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

// All encoder plans and splits by local search, single-threaded, with the run of the LLM alone:
// what the paper's algorithm is timed on.
void Plan(benchmark::State& state, step::Optimus::Scheduler scheduler) {
  const step::Experiment experiment = ValueOrStop(step::LoadExperiment(absl::StrCat(
      OPTIMUS_SOURCE_DIR "/examples/paper/strong_", state.range(0), "_optimus.textproto")));
  const hw::ProfileCostModel costs(ValueOrStop(step::LoadExperimentProfile(experiment)));
  colocate::PlanOptions options;
  options.scheduler = scheduler;
  const auto plan = [&] { return ValueOrStop(colocate::PlanOptimus(experiment, costs, options)); };
  state.counters["peak_MiB"] = PeakMib(plan);
  double splits = 0, predicted_s = 0;
  for (auto _ : state) {
    const colocate::OptimusPlan result = plan();
    splits = static_cast<double>(result.splits_evaluated);
    predicted_s = ToSeconds(result.ranked.front().predicted);
  }
  state.counters["splits"] = splits;
  state.counters["predicted_s"] = predicted_s;
}

void BM_PlanPaper(benchmark::State& state) { Plan(state, step::Optimus::PAPER); }
void BM_PlanList(benchmark::State& state) { Plan(state, step::Optimus::LIST); }

// The simulation runs in a forked child: only real time sees it.
BENCHMARK(BM_Folded)->Arg(3072)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Group)
    ->Arg(384)
    ->Arg(768)
    ->Arg(1536)
    ->Arg(3072)
    ->Arg(6144)
    ->Arg(12288)
    ->Arg(24576)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Gpu)->Arg(384)->Arg(768)->Arg(1536)->Arg(3072)->UseRealTime()->Unit(
    benchmark::kMillisecond);
BENCHMARK(BM_BuildStep)->Arg(3072)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Validate)->Arg(3072)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_CriticalPath)->Arg(3072)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_PlanPaper)->Arg(1536)->Arg(3072)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_PlanList)->Arg(1536)->Arg(3072)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace optimus

BENCHMARK_MAIN();
