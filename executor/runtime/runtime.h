#pragma once
// Walks one rank's program: enqueues every operation on its stream in order of issue, with an event
// for every dependency that another stream has to wait for.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "executor/runtime/communicator.h"
#include "executor/runtime/device.h"
#include "executor/runtime/workload.h"
#include "executor/runtime/world.h"
#include "schedule/ir/schedule.h"

namespace optimus::executor {

// When one operation ran on this rank: rank 0's CLOCK_MONOTONIC, nanoseconds. `begin`: its stream
// was free and what it waits for had ended (a collective may wait for its other members after
// that).
struct OperationTime {
  std::int64_t begin_ns = 0, end_ns = 0;
};

// Where time is emulated: how one rank kept to the nominal times of a step. Zero elsewhere.
struct NominalTimes {
  std::int64_t end_ns = 0;      // when the last operation should have ended: rank 0's clock
  std::int64_t late_ns = 0;     // most that an operation ended after its time
  std::int64_t compute_ns = 0;  // what the operations of the compute stream should have taken
};

// What a stream is at, for messages when a run hangs.
struct StreamState {
  ir::Stream stream = ir::Stream::kCompute;
  std::uint32_t operation = 0;           // the first that has not ended
  bool begun = false;                    // false: it waits for `waits_for`
  std::vector<std::uint32_t> waits_for;  // dependencies that have not ended
};

class Runtime {
 public:
  // The Schedule must have passed ir::Validate; everything given must outlive the Runtime. Called
  // by all ranks at once: splits the world into the Schedule's groups. `workload` may be null.
  // INVALID_ARGUMENT where the Schedule's world is not of world.size() ranks.
  static absl::StatusOr<std::unique_ptr<Runtime>> Create(const ir::Schedule& schedule, World& world,
                                                         Device& device, Communicator& ranks,
                                                         Workload* workload);
  ~Runtime();

  // One step: enqueues it, waits at a barrier of the world, starts. `while_waiting` is called
  // after 4 ms, then less and less often, at last every 50 ms; its error ends the step. Errors of
  // operations name the rank and the operation; after one, nothing more can be run.
  absl::StatusOr<std::vector<OperationTime>> Step(int step,
                                                  absl::FunctionRef<absl::Status()> while_waiting);
  // Of the last step, which has ended.
  NominalTimes Nominal() const;

  const ir::Program& program() const;
  // By stream, those that have not finished. Between steps: none; after a step that failed, where
  // it stood.
  std::vector<StreamState> Current() const;
  // Operations that have ended in this step so far.
  std::int64_t ended() const;
  // "step 4: compute: llm layer 3 micro-batch 5 forward fc1 (operation 17) runs; ..." of Current();
  // empty where that is.
  std::string DescribeCurrent() const;

 private:
  class Impl;
  explicit Runtime(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// This rank's program, with the rank's coordinates.
struct RankPlace {
  int stage = 0, d = 0, t = 0;
  int program = 0;  // index into Schedule::programs
};
RankPlace PlaceOf(const ir::Schedule& schedule, int rank);

}  // namespace optimus::executor
