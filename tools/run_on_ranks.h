#pragma once
// What every rank of `optimus run` does.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/backends/backend.h"
#include "executor/runtime/run.h"
#include "executor/runtime/runtime.h"
#include "executor/runtime/workload.h"
#include "tools/job.h"
#include "tools/numerics_report.h"
#include "tools/planned_step.h"
#include "tools/ranks.h"
#include "tools/report.h"
#include "tools/run_command.h"

namespace optimus::tools {

// INVALID_ARGUMENT, with the right command, where `input` is made for another number of ranks.
absl::Status CheckWorldSize(const Input& input, int started, const Arguments& arguments);

class RunOnRanks {
 public:
  RunOnRanks(const RunFlags& flags, executor::BackendKind kind, Ranks& ranks,
             const Arguments& arguments)
      : flags_(flags), kind_(kind), ranks_(ranks), arguments_(arguments) {}

  // Returns the exit code, the same at every rank.
  absl::StatusOr<int> Run();

 private:
  absl::StatusOr<std::string> Plan();  // rank 0: reads, checks, plans
  absl::Status CheckFiles(const Input& input) const;
  absl::Status Build();
  absl::StatusOr<int> Finish(const executor::RunResult& result);  // rank 0: reports
  absl::Status CompareNumerics();
  absl::StatusOr<Report> MakeReport(const executor::RunResult& result,
                                    const ir::Timeline& timeline) const;
  void LeaveOutEfficiency(Report& report) const;
  absl::Status WriteFiles(const ir::Timeline& timeline) const;

  const RunFlags& flags_;
  const executor::BackendKind kind_;
  Ranks& ranks_;
  const Arguments& arguments_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  PlannedStep planned_;  // at rank 0
  Job job_;
  executor::Backend backend_;
  std::unique_ptr<executor::Workload> workload_;
  std::unique_ptr<executor::Runtime> runtime_;
  std::optional<NumericsOutcome> numerics_;  // at rank 0
};

}  // namespace optimus::tools
