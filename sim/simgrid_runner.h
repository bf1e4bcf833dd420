#pragma once
// Runs a Schedule on SimGrid. The only user of SimGrid is this folder.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cost_model.h"
#include "schedule/ir/runner.h"

namespace optimus::sim {

enum class Fidelity {
  kAuto,    // the cheapest one that is exact for this run
  kFolded,  // one entity per pipeline stage and lane: one data-parallel replica stands for all
  kGroup,   // one entity per lane of a tensor-parallel group
  kGpu,     // one entity per GPU
};
const char* ToString(Fidelity fidelity);
absl::StatusOr<Fidelity> ParseFidelity(const std::string& text);

struct SlowGpu {
  int rank = 0;
  double factor = 1.0;  // kernel times are multiplied by it; above 0, at most 1000
};

struct Options {
  Fidelity fidelity = Fidelity::kAuto;
  // Rail-optimised fabric: GPU t of every node is on rail t; a rail's leaf switch serves
  // `nodes_per_leaf` nodes. Uplinks are 1 : oversubscription; at 1 they cannot bind and are not
  // modelled. At most 1e6.
  int nodes_per_leaf = 32;
  double oversubscription = 1.0;
  std::vector<SlowGpu> slow_gpus;
  // Whether kernels and collectives of one GPU slow each other as the cost model says.
  bool interference = true;
  bool record_spans = false;  // of the first data-parallel replica, first rank of every lane
  // Run in the calling process, which can do so once (SimGrid allows one engine a process), may be
  // ended by an error of SimGrid's, and gives nothing back until it ends. For processes that are
  // made for one simulation: a fork less is up to a third of a short one's time.
  bool in_this_process = false;
  // Called now and then (every half second at most) with the part of the work that is done, 0 to 1.
  // It is called in the child process: it may print, but what it changes in memory is lost.
  std::function<void(double)> progress;
};

// What a run cost.
struct RunStats {
  std::int64_t peak_rss_bytes = 0;  // of the child process, which starts as a copy of the caller
  std::int64_t events = 0;          // of our own queue; identical GPUs share some
  std::int64_t flows = 0;           // transfers over links that can be shared
  std::int64_t shared_flows = 0;    // those that did share one: run by SimGrid
};

struct FidelityChoice {
  Fidelity fidelity = Fidelity::kGpu;
  std::string reason;  // one sentence
};
// What kAuto takes, or whether the asked fidelity is exact; FAILED_PRECONDITION, with the reason,
// where a coarser one than exact was asked for.
absl::StatusOr<FidelityChoice> ChooseFidelity(const ir::Schedule& schedule, const CostModel& costs,
                                              const Options& options);

// Starts SimGrid in this process, so that those that are forked from it find it started. For those
// who fork often.
void PrepareEngine();

// SimGrid allows one engine per process: every Run is done in a forked child.
class SimGridRunner : public ir::Runner {
 public:
  SimGridRunner(const CostModel& costs, Options options)
      : costs_(costs), options_(std::move(options)) {}
  // INVALID_ARGUMENT or FAILED_PRECONDITION for unfit options or factors of interference;
  // INVALID_ARGUMENT where the step would last longer than ir::kLongestStep or the nodes are not
  // those of the cost model; INTERNAL where entities are blocked at the end, or where the child
  // process dies.
  absl::StatusOr<ir::Timeline> Run(const ir::Schedule& schedule) override;
  // Of the last Run that returned a timeline.
  const RunStats& stats() const { return stats_; }

 private:
  const CostModel& costs_;
  Options options_;
  RunStats stats_;
};

}  // namespace optimus::sim
