#include "validation/compare_timelines.h"

#include <array>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "validation/compare_work.h"

namespace optimus::validation {
namespace {

// GPUs by stage and lane: what the entities of a timeline stand for, however they are folded.
using Places = std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t>;

absl::StatusOr<Places> PlacesOf(const std::string& which, const ir::Timeline& timeline) {
  if (timeline.entities.empty() || timeline.step <= Picoseconds(0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        which, " timeline: ", timeline.entities.empty() ? "has no entities" : "lasts no time"));
  }
  Places places;
  for (const ir::EntityAccount& entity : timeline.entities) {
    if (entity.gpus < 1) {
      return absl::InvalidArgumentError(absl::StrCat(which, " timeline: the entity of rank ",
                                                     entity.rank, " stands for ", entity.gpus,
                                                     " GPUs"));
    }
    places[{entity.stage, entity.lane}] += entity.gpus;
  }
  return places;
}

std::int64_t Gpus(const Places& places) {
  std::int64_t gpus = 0;
  for (const auto& [place, count] : places) gpus += count;
  return gpus;
}

absl::Status CheckSamePlaces(const Places& simulated, const Places& measured) {
  if (Gpus(simulated) != Gpus(measured)) {
    return absl::InvalidArgumentError(absl::StrCat("different worlds: simulated ", Gpus(simulated),
                                                   " GPUs, measured ", Gpus(measured),
                                                   "; hint: compare timelines of one schedule"));
  }
  // As many GPUs in all: where the measurement has a place more, it has another with too few.
  for (const auto& [place, gpus] : simulated) {
    const auto at = measured.find(place);
    const std::int64_t others = at == measured.end() ? 0 : at->second;
    if (others == gpus) continue;
    return absl::InvalidArgumentError(absl::StrCat("stage ", place.first, ", lane ", place.second,
                                                   ": simulated ", gpus, " GPUs, measured ", others,
                                                   "; hint: compare timelines of one schedule"));
  }
  return absl::OkStatus();
}

absl::Status CheckSchedule(const Places& places, const ir::Schedule& schedule) {
  Places expected;
  const ir::Parallelism& world = schedule.world;
  for (int stage = 0; stage < world.pp; ++stage) {
    for (int lane = 0; lane < schedule.lanes; ++lane) {
      expected[{stage, lane}] = std::int64_t{world.dp} * ir::LaneWidth(schedule);
    }
  }
  if (expected == places) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "schedule '", schedule.name, "' (DP ", world.dp, ", PP ", world.pp, ", TP ", world.tp, ", ",
      schedule.lanes, " lanes) is not that of the timelines, which have ", Gpus(places),
      " GPUs in ", places.size(), " stages and lanes; hint: give the schedule that was run"));
}

constexpr std::size_t kShares = 2 + ir::kBubbleClassCount;
using Shares = std::array<double, kShares>;  // seconds: compute, optimizer, bubbles by class

Shares MeanShares(const ir::Timeline& timeline) {
  Shares sums{};
  double gpus = 0;
  for (const ir::EntityAccount& entity : timeline.entities) {
    const ir::RankAccount& account = entity.account;
    sums[0] += entity.gpus * ToSeconds(account.compute);
    sums[1] += entity.gpus * ToSeconds(account.optimizer);
    for (std::size_t i = 0; i < account.bubbles.size(); ++i) {
      sums[2 + i] += entity.gpus * ToSeconds(account.bubbles[i]);
    }
    gpus += entity.gpus;
  }
  for (double& sum : sums) sum /= gpus;
  return sums;
}

std::string ShareName(std::size_t share) {
  if (share == 0) return "compute";
  if (share == 1) return "optimizer";
  return absl::StrCat("bubble_", ToString(static_cast<ir::BubbleClass>(share - 2)));
}

}  // namespace

double RelativeError(double simulated, double measured) {
  if (simulated == measured) return 0;
  if (measured == 0) return std::numeric_limits<double>::infinity();
  return simulated / measured - 1;
}

absl::StatusOr<Comparison> Compare(const ir::Timeline& simulated, const ir::Timeline& measured,
                                   const ir::Schedule* schedule) {
  OPTIMUS_ASSIGN_OR_RETURN(const Places of_simulated, PlacesOf("simulated", simulated));
  OPTIMUS_ASSIGN_OR_RETURN(const Places of_measured, PlacesOf("measured", measured));
  OPTIMUS_RETURN_IF_ERROR(CheckSamePlaces(of_simulated, of_measured));
  if (schedule != nullptr) OPTIMUS_RETURN_IF_ERROR(CheckSchedule(of_measured, *schedule));
  Comparison comparison;
  comparison.simulated_runner = simulated.runner;
  comparison.measured_runner = measured.runner;
  comparison.simulated_step = simulated.step;
  comparison.measured_step = measured.step;
  const double step_s = ToSeconds(measured.step);
  comparison.step_error = RelativeError(ToSeconds(simulated.step), step_s);
  const Shares a = MeanShares(simulated), b = MeanShares(measured);
  for (std::size_t i = 0; i < kShares; ++i) {
    comparison.shares.push_back({ShareName(i), a[i], b[i], (a[i] - b[i]) / step_s});
  }
  OPTIMUS_RETURN_IF_ERROR(CompareWork(simulated, measured, schedule, comparison));
  return comparison;
}

}  // namespace optimus::validation
