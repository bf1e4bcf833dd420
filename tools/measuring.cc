#include "tools/measuring.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "hw_profiles/from_measurements.h"
#include "tools/out_of_memory.h"

namespace optimus::tools {

executor::MeasurePlan PlanForJobs(const std::vector<Job>& jobs, int ranks) {
  executor::MeasurePlan plan;
  for (const Job& job : jobs) executor::Merge(plan, executor::PlanFor(job.schedule));
  if (ranks > 1) return plan;
  plan.transfers.clear();
  plan.interference = false;
  return plan;
}

executor::MeasurePlan RangeOfSizes(executor::BackendKind kind, executor::World& world,
                                   Thoroughness thoroughness) {
  const double largest = kind == executor::BackendKind::kCuda ? 2e12 : 2e10;
  const Flops most(thoroughness == Thoroughness::kQuick ? largest / 10 : largest);
  executor::MeasurePlan plan = executor::GenericPlan(world.size(), world.local_size(), most);
  if (world.size() == 1) plan.transfers.clear();
  return plan;
}

std::string FewSamplesText(const HardwareMeasurements& measured) {
  constexpr int kEnough = 5;
  int few = 0, all = 0, fewest = kEnough;
  const auto count = [&](const MeasuredTime& time) {
    ++all;
    if (time.repetitions < kEnough) ++few;
    fewest = std::min(fewest, static_cast<int>(time.repetitions));
  };
  for (const KernelMeasurement& kernel : measured.kernels) count(kernel.time);
  for (const TransferMeasurement& transfer : measured.transfers) {
    for (const TransferPoint& point : transfer.points) count(point.time);
  }
  if (few == 0) return "";
  return absl::StrCat(few, " of ", all, " kernels and sizes of transfers were measured fewer than ",
                      kEnough, " times (the fewest: ", fewest,
                      "), so one bad moment can be their median; hint: a larger --repetitions");
}

std::string Today() { return absl::FormatTime("%Y-%m-%d", absl::Now(), absl::LocalTimeZone()); }

// All that the probes need, here, where the ranks agree on what goes wrong.
absl::Status Measuring::Prepare() {
  OPTIMUS_RETURN_IF_ERROR(backend_.device->Prepare(2, 1, plan_.kernels));
  Bytes largest;
  for (const executor::TransferCase& transfer : plan_.transfers) {
    for (const Bytes size : transfer.sizes) largest = std::max(largest, size);
  }
  return backend_.ranks->Reserve(largest);
}

absl::Status Measuring::Round(int repetitions) {
  executor::Watchdog& watchdog = ranks_.watchdog();
  watchdog.Follow("makes ready to measure", nullptr, nullptr);
  if (!prepared_) OPTIMUS_RETURN_IF_ERROR(ranks_.Agree(NameNotReady("", Prepare())));
  prepared_ = true;
  return executor::MeasureRound(
      plan_, ranks_.world(), *backend_.device, *backend_.ranks, repetitions, samples_,
      [&watchdog] { return watchdog.Tick(); },
      [&watchdog](std::string what, std::function<std::string()> current,
                  std::function<std::int64_t()> progress) {
        watchdog.Follow(std::move(what), std::move(current), std::move(progress));
      });
}

HardwareMeasurements Measuring::Summary() const {
  return executor::Summarize(plan_, samples_, ranks_.world(), *backend_.device,
                             executor::ToString(kind_), Today());
}

absl::StatusOr<hw::HardwareProfile> Measuring::Profile(const std::string& name,
                                                       const hw::HardwareProfile& base) const {
  return hw::MakeProfile(name, Summary(), base);
}

}  // namespace optimus::tools
