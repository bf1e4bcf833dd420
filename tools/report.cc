#include "tools/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "tools/facts.h"

namespace optimus::tools {
namespace {

// Sums over GPUs, in whole picoseconds: exact.
class ShareSum {
 public:
  void Add(const ir::EntityAccount& entity) {
    gpus_ += entity.gpus;
    compute_ += Times(entity.account.compute, entity.gpus);
    optimizer_ += Times(entity.account.optimizer, entity.gpus);
    for (int i = 0; i < ir::kBubbleClassCount; ++i) {
      bubbles_[i] += Times(entity.account.bubbles[i], entity.gpus);
    }
  }
  std::int64_t gpus() const { return gpus_; }
  TimeShares Mean() const {
    TimeShares mean{MeanSeconds(compute_), MeanSeconds(optimizer_), {}};
    for (int i = 0; i < ir::kBubbleClassCount; ++i) mean.bubbles_s[i] = MeanSeconds(bubbles_[i]);
    return mean;
  }

 private:
  using Wide = __int128;  // 100 s times 100,000 GPUs does not fit 64 bits
  static Wide Times(Picoseconds t, std::int32_t gpus) { return Wide{t.value()} * gpus; }
  double MeanSeconds(Wide sum) const {
    return static_cast<double>(sum) / static_cast<double>(gpus_) /
           static_cast<double>(kPicosecondsPerSecond);
  }
  std::int64_t gpus_ = 0;
  Wide compute_ = 0, optimizer_ = 0;
  std::array<Wide, ir::kBubbleClassCount> bubbles_{};
};

absl::Status CheckAccounts(const ir::Timeline& timeline) {
  for (const ir::EntityAccount& entity : timeline.entities) {
    if (entity.account.total() != timeline.step) {
      return absl::InternalError(
          absl::StrCat("rank ", entity.rank, " (stage ", entity.stage,
                       "): compute + bubbles + optimizer = ", entity.account.total().value(),
                       " ps, but the step takes ", timeline.step.value(), " ps"));
    }
  }
  return absl::OkStatus();
}

std::vector<StageReport> StageReports(const step::Step& step, const ir::Timeline& timeline) {
  // A stage may have several programs (lanes); its times are means over all of its GPUs.
  std::vector<ShareSum> sums(static_cast<std::size_t>(step.schedule.world.pp));
  for (const ir::EntityAccount& entity : timeline.entities) sums[entity.stage].Add(entity);
  std::vector<StageReport> stages;
  for (std::size_t s = 0; s < sums.size(); ++s) {
    stages.push_back({static_cast<int>(s), sums[s].gpus(), sums[s].Mean(), {}});
  }
  std::vector<step::StageContents> contents = step.contents;
  std::stable_sort(contents.begin(), contents.end(),
                   [](const auto& a, const auto& b) { return a.chunk < b.chunk; });
  for (const step::StageContents& c : contents) stages[c.stage].layers.push_back(c.layers);
  return stages;
}

std::optional<Efficiency> MakeEfficiency(const step::Step& step, const hw::ProfileCostModel& costs,
                                         Picoseconds time) {
  if (step.model_flops.value() <= 0 || time <= Picoseconds(0)) return std::nullopt;
  Efficiency e;
  e.model_flops = step.model_flops.value();
  e.hardware_flops = step.hardware_flops.value();
  e.peak_flops_per_s = costs.peak_flops().value();
  const double available = ToSeconds(time) * step.schedule.world.gpus() * e.peak_flops_per_s;
  e.mfu = e.model_flops / available;
  e.hfu = e.hardware_flops / available;
  e.aggregate_pflops_per_s = e.model_flops / ToSeconds(time) / 1e15;
  return e;
}

std::optional<MemoryReport> MakeMemory(const step::Step& step, const hw::ProfileCostModel& costs) {
  if (!MemoryIsKnown(step)) return std::nullopt;
  MemoryReport memory{step.memory, 0, costs.memory_capacity()};
  for (std::size_t s = 0; s < memory.stages.size(); ++s) {
    if (memory.stages[s].total() > memory.stages[memory.fullest].total()) {
      memory.fullest = static_cast<int>(s);
    }
  }
  return memory;
}

}  // namespace

bool MemoryIsKnown(const step::Step& step) {
  return std::any_of(step.memory.begin(), step.memory.end(),
                     [](const step::StageMemory& m) { return m.total() > Bytes(0); });
}

std::string ProfileHash(const hw::HardwareProfile& profile) {
  return ContentHash(SerializeDeterministically(profile));
}

absl::StatusOr<Report> MakeReport(const step::Step& step, const hw::ProfileCostModel* costs,
                                  const ir::Timeline& timeline) {
  OPTIMUS_RETURN_IF_ERROR(CheckAccounts(timeline));
  Report report;
  report.version = OPTIMUS_VERSION;
  report.experiment = step.experiment.name().empty() ? step.schedule.name : step.experiment.name();
  report.facts = DescribeStep(step);
  report.gpus = step.schedule.world.gpus();
  report.global_batch = step.experiment.batch().global_batch();
  report.step = timeline.step;
  ShareSum all;
  for (const ir::EntityAccount& entity : timeline.entities) all.Add(entity);
  if (all.gpus() != report.gpus) {
    return absl::InternalError(
        absl::StrCat("the timeline accounts for ", all.gpus(), " of ", report.gpus, " GPUs"));
  }
  report.average = all.Mean();
  report.stages = StageReports(step, timeline);
  if (costs != nullptr) {
    report.profile = costs->profile().name();
    report.profile_hash = ProfileHash(costs->profile());
    report.efficiency = MakeEfficiency(step, *costs, timeline.step);
    report.memory = MakeMemory(step, *costs);
  }
  report.fidelity = timeline.fidelity;
  report.fidelity_reason = timeline.fidelity_reason;
  report.entities = static_cast<std::int64_t>(timeline.entities.size());
  report.operations = timeline.operations;
  report.assumptions.assign(step.experiment.assumptions().begin(),
                            step.experiment.assumptions().end());
  report.notes = step.notes;
  return report;
}

}  // namespace optimus::tools
