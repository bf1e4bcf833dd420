#pragma once
// Measuring for a profile, on all ranks: what the commands profile and validate have in common.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/backends/backend.h"
#include "executor/measure/measure.h"
#include "hw_profiles/profile.h"
#include "tools/job.h"
#include "tools/ranks.h"

namespace optimus::tools {

// What the jobs need, as far as `ranks` can measure it: a rank alone has nobody to move data to.
executor::MeasurePlan PlanForJobs(const std::vector<Job>& jobs, int ranks);

// Kernels and transfers of all sizes, where no schedule is given. Quick: without the largest GEMMs,
// good enough to make a first plan.
enum class Thoroughness { kQuick, kFull };
executor::MeasurePlan RangeOfSizes(executor::BackendKind kind, executor::World& world,
                                   Thoroughness thoroughness);

// One line where the median of any kernel or size of a transfer is of fewer samples than tell a bad
// moment from the machine; else empty.
std::string FewSamplesText(const HardwareMeasurements& measured);

// Today, as a profile writes it: YYYY-MM-DD.
std::string Today();

// Samples taken in turns with other things, and the profile that they make.
class Measuring {
 public:
  Measuring(Ranks& ranks, executor::Backend& backend, executor::BackendKind kind,
            executor::MeasurePlan plan)
      : ranks_(ranks), backend_(backend), kind_(kind), plan_(std::move(plan)) {}
  absl::Status Round(int repetitions);
  HardwareMeasurements Summary() const;
  // At rank 0.
  absl::StatusOr<hw::HardwareProfile> Profile(const std::string& name,
                                              const hw::HardwareProfile& base) const;
  const executor::MeasurePlan& plan() const { return plan_; }
  const executor::Samples& samples() const { return samples_; }

 private:
  absl::Status Prepare();

  Ranks& ranks_;
  executor::Backend& backend_;
  executor::BackendKind kind_;
  executor::MeasurePlan plan_;
  executor::Samples samples_;
  bool prepared_ = false;
};

}  // namespace optimus::tools
