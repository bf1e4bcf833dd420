#include "sim/simgrid_runner.h"

#include <array>

#include "base/status_macros.h"
#include "sim/child_process.h"
#include "sim/interpreter.h"
#include "sim/outcome_bytes.h"

namespace optimus::sim {
namespace {

// In the child process.
absl::StatusOr<std::string> Simulate(const ir::Schedule& schedule, const CostModel& costs,
                                     const Options& options, Fidelity fidelity) {
  std::string name = "optimus";
  std::string quiet = "--log=root.thres:critical";
  std::array<char*, 3> arguments{name.data(), quiet.data(), nullptr};
  int count = 2;
  // Both live until the process ends: SimGrid's own end is slow, and nobody needs it.
  auto* engine = new simgrid::s4u::Engine(&count, arguments.data());
  simgrid_compat::ConfigureExactSharing();
  auto* interpreter = new Interpreter(*engine, schedule, costs, options, fidelity);
  OPTIMUS_ASSIGN_OR_RETURN(const Outcome outcome, interpreter->Run());
  return ToBytes(outcome);
}

}  // namespace

absl::StatusOr<ir::Timeline> SimGridRunner::Run(const ir::Schedule& schedule) {
  OPTIMUS_ASSIGN_OR_RETURN(const FidelityChoice choice, ChooseFidelity(schedule, costs_, options_));
  OPTIMUS_ASSIGN_OR_RETURN(const ChildResult result, RunInChild([&] {
                             return Simulate(schedule, costs_, options_, choice.fidelity);
                           }));
  OPTIMUS_ASSIGN_OR_RETURN(Outcome outcome, FromBytes(result.bytes));
  outcome.timeline.fidelity_reason = choice.reason;
  stats_ = outcome.stats;
  stats_.peak_rss_bytes = result.peak_rss_bytes;
  return std::move(outcome.timeline);
}

}  // namespace optimus::sim
