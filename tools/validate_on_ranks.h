#pragma once
// What every rank of `optimus validate run` does:
//   1. a quick profile over a range of sizes; all experiments are planned with it;
//   2. the kernels and transfers of those schedules are measured; all are planned again. These
//      schedules stay;
//   3. rounds: profile everything a few times, then run some steps of every experiment, each round
//      beginning with another one. What drifts in the machine falls on both alike;
//   4. a profile of all samples; the schedules are simulated with it and compared.
// The emulated backend takes its times from the experiments' own profile: nothing is measured.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/backends/backend.h"
#include "executor/runtime/run.h"
#include "executor/runtime/runtime.h"
#include "tools/job.h"
#include "tools/measuring.h"
#include "tools/planned_step.h"
#include "tools/ranks.h"
#include "tools/validate_command.h"
#include "tools/validation.h"

namespace optimus::tools {

// The experiments of `flags`, at least one, all under its pipeline schedule where it names one.
// INVALID_ARGUMENT where they do not go together: other numbers of ranks, the same name twice,
// other profiles of emulated ones.
absl::StatusOr<std::vector<Input>> LoadTogether(const ValidateRunFlags& flags,
                                                executor::BackendKind kind);

class ValidateOnRanks {
 public:
  ValidateOnRanks(const ValidateRunFlags& flags, executor::BackendKind kind, Ranks& ranks,
                  const Arguments& arguments)
      : flags_(flags), kind_(kind), ranks_(ranks), arguments_(arguments) {}

  // Returns the exit code, the same at every rank.
  absl::StatusOr<int> Run();

 private:
  bool measures() const { return kind_ != executor::BackendKind::kEmulated; }
  absl::StatusOr<std::string> Load();                            // rank 0
  absl::StatusOr<std::string> Plan(const Measuring* measuring);  // rank 0
  absl::Status MakeBackend();
  absl::Status FixSchedules();
  absl::Status TimeReference();
  absl::Status RunRounds();
  absl::Status RunRound(int round);
  absl::Status RunExperiment(std::size_t index, int round, int steps);
  void CloseBackend();
  absl::StatusOr<int> Finish();  // rank 0
  absl::StatusOr<hw::HardwareProfile> FinalProfile() const;
  absl::StatusOr<ValidatedExperiment> Validate(std::size_t index, const hw::ProfileCostModel& costs,
                                               ir::Timeline& simulated,
                                               ir::Timeline& measured) const;
  MachineNoise Noise() const;
  void Rank(Validation& validation) const;  // those that train the same
  absl::Status CheckFiles() const;          // of --out: none is one that is read
  absl::Status WriteFiles(
      const Validation& validation, const hw::HardwareProfile& profile,
      const std::vector<std::pair<ir::Timeline, ir::Timeline>>& timelines) const;

  const ValidateRunFlags& flags_;
  const executor::BackendKind kind_;
  Ranks& ranks_;
  const Arguments& arguments_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<Input> inputs_;         // at rank 0
  std::vector<PlannedStep> planned_;  // at rank 0
  std::vector<Job> jobs_;
  executor::Backend backend_;
  std::string device_;                          // its description
  std::unique_ptr<executor::Runtime> runtime_;  // while an experiment runs
  std::unique_ptr<Measuring> measuring_;
  std::unique_ptr<Measuring> reference_;
  std::vector<std::size_t> visits_;           // samples of the reference kernel after each visit
  std::vector<executor::RunResult> results_;  // by experiment
  std::optional<HardwareMeasurements> measured_;  // of all rounds; at rank 0
};

}  // namespace optimus::tools
