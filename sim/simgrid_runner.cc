#include "sim/simgrid_runner.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "base/status_macros.h"
#include "schedule/ir/critical_path.h"
#include "schedule/ir/step_length.h"
#include "sim/child_process.h"
#include "sim/interpreter.h"
#include "sim/outcome_bytes.h"

namespace optimus::sim {
namespace {

// SimGrid takes over SIGINT and SIGSEGV, and then ends the process from inside a signal handler,
// where an allocator in use can crash it. This gives both back while it lives.
class KeepSignals {
 public:
  KeepSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &before_[i]);
  }
  ~KeepSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  KeepSignals(const KeepSignals&) = delete;
  KeepSignals& operator=(const KeepSignals&) = delete;

 private:
  static constexpr std::array<int, 2> kSignals{SIGINT, SIGSEGV};
  std::array<struct sigaction, kSignals.size()> before_{};
};

simgrid::s4u::Engine* prepared_engine = nullptr;

simgrid::s4u::Engine* NewEngine() {
  // Of this process or of the one it was forked from: used once either way.
  if (prepared_engine != nullptr) return std::exchange(prepared_engine, nullptr);
  const KeepSignals keep;
  std::string name = "optimus";
  std::string quiet = "--log=root.thres:critical";
  std::array<char*, 3> arguments{name.data(), quiet.data(), nullptr};
  int count = 2;
  auto* engine = new simgrid::s4u::Engine(&count, arguments.data());
  simgrid_compat::ConfigureExactSharing();
  return engine;
}

double LargestSlowDown(const Options& options, const Interference& interference) {
  double largest = 1.0;
  for (const SlowGpu& gpu : options.slow_gpus) largest = std::max(largest, gpu.factor);
  if (!options.interference) return largest;
  return largest * std::max(interference.kernel_under_nvlink, interference.kernel_under_nic);
}

// Once in a process.
absl::StatusOr<Outcome> Simulate(const ir::Schedule& schedule, const CostModel& costs,
                                 const Options& options, Fidelity fidelity) {
  // Both live until the process ends: SimGrid's own end is slow, and nobody needs it.
  auto* engine = NewEngine();
  auto* interpreter = new Interpreter(*engine, schedule, costs, options, fidelity);
  return interpreter->Run();
}

absl::StatusOr<Outcome> SimulateInChild(const ir::Schedule& schedule, const CostModel& costs,
                                        const Options& options, Fidelity fidelity) {
  OPTIMUS_ASSIGN_OR_RETURN(const ChildResult result,
                           RunInChild([&]() -> absl::StatusOr<std::string> {
                             OPTIMUS_ASSIGN_OR_RETURN(const Outcome outcome,
                                                      Simulate(schedule, costs, options, fidelity));
                             return ToBytes(outcome);
                           }));
  OPTIMUS_ASSIGN_OR_RETURN(Outcome outcome, FromBytes(result.bytes));
  outcome.stats.peak_rss_bytes = result.peak_rss_bytes;
  return outcome;
}

}  // namespace

void PrepareEngine() {
  if (prepared_engine == nullptr) prepared_engine = NewEngine();
}

absl::StatusOr<ir::Timeline> SimGridRunner::Run(const ir::Schedule& schedule) {
  OPTIMUS_ASSIGN_OR_RETURN(const FidelityChoice choice, ChooseFidelity(schedule, costs_, options_));
  OPTIMUS_RETURN_IF_ERROR(ir::CheckNodeSize(schedule, costs_));
  OPTIMUS_RETURN_IF_ERROR(
      ir::CheckLength(schedule, costs_, LargestSlowDown(options_, costs_.interference())));
  OPTIMUS_ASSIGN_OR_RETURN(Outcome outcome,
                           options_.in_this_process
                               ? Simulate(schedule, costs_, options_, choice.fidelity)
                               : SimulateInChild(schedule, costs_, options_, choice.fidelity));
  outcome.timeline.fidelity_reason = choice.reason;
  stats_ = outcome.stats;
  return std::move(outcome.timeline);
}

}  // namespace optimus::sim
