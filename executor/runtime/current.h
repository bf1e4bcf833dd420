#pragma once
// What the streams of a rank are at while a step runs. For the thread that enqueued it.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/runtime/device.h"
#include "executor/runtime/plan.h"
#include "executor/runtime/runtime.h"
#include "schedule/ir/schedule.h"

namespace optimus::executor {

class CurrentOperations {
 public:
  // All must outlive it.
  CurrentOperations(const ir::Schedule& schedule, const Plan& plan, const Device& device);

  void Start(int step);  // it has been started
  void Stop();           // it has ended
  // As Runtime's Current, ended and DescribeCurrent.
  std::vector<StreamState> States() const;
  std::int64_t ended() const;
  std::string Describe() const;

 private:
  const ir::Program& program() const { return schedule_.programs[plan_.place.program]; }
  std::string Name(std::uint32_t operation) const;
  std::string Doing(std::uint32_t operation) const;
  std::string Line(const StreamState& state) const;
  void Advance() const;

  const ir::Schedule& schedule_;
  const Plan& plan_;
  const Device& device_;
  std::array<std::vector<std::uint32_t>, ir::kStreamCount> streams_;  // ids, in order
  // By stream: how many of its operations are known to have ended. Only ever grows in a step, so
  // asking often is cheap.
  mutable std::array<std::size_t, ir::kStreamCount> done_{};
  int step_ = -1;
  bool running_ = false;
};

}  // namespace optimus::executor
