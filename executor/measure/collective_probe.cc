#include <algorithm>
#include <limits>

#include "base/status_macros.h"
#include "executor/measure/probes.h"
#include "executor/measure/schedule_writer.h"

namespace optimus::executor {
namespace {

// Operations of one size in one repetition: the gathering all-reduce, the moment when a member is
// ready, the collective, the moment when it can go on.
constexpr std::uint32_t kReady = 1, kGoesOn = 3, kOperations = 4;

CollectiveWork Gathering() { return {CollectiveKind::kAllReduce, "gathering", Bytes(4)}; }

std::int64_t LatestReady(const std::vector<OperationTime>& rank, std::uint32_t first,
                         std::int64_t latest) {
  return std::max(latest, rank[first + kReady].end_ns);
}

}  // namespace

absl::StatusOr<CollectiveProbe> MakeCollectiveProbe(const TransferCase& transfer, int repetitions,
                                                    ProbeWorld world) {
  OPTIMUS_ASSIGN_OR_RETURN(const GroupPlacement placement, PlaceGroups(transfer, world));
  ScheduleWriter writer("measure collectives", placement.world, world.ranks_per_node);
  const std::int32_t group = writer.AddGroup(placement.group);
  const std::int32_t gathering = writer.AddWork(Gathering(), group);
  std::vector<std::int32_t> works;
  for (const Bytes size : transfer.sizes) {
    works.push_back(writer.AddWork({transfer.kind, ToString(transfer.kind), size}, group));
  }
  for (int stage = 0; stage < placement.world.pp; ++stage) {
    std::vector<std::uint32_t> before;
    for (int repetition = 0; repetition <= repetitions; ++repetition) {
      writer.SetRepetition(repetition);
      for (const std::int32_t work : works) {
        const std::uint32_t gathered = writer.AddCollective(stage, gathering, before);
        const std::uint32_t ready = writer.AddKernel(stage, writer.moment(), {gathered});
        const std::uint32_t done = writer.AddCollective(stage, work, {ready});
        before = {writer.AddKernel(stage, writer.moment(), {done})};
      }
    }
  }
  return CollectiveProbe{writer.Take(), static_cast<int>(works.size()), repetitions};
}

Series ReadCollectives(const CollectiveProbe& probe, const StepTimes& times) {
  const ir::Parallelism& world = probe.schedule.world;
  Series series(static_cast<std::size_t>(probe.sizes));
  auto first = static_cast<std::uint32_t>(probe.sizes) * kOperations;  // after the warm-up
  for (int repetition = 1; repetition <= probe.repetitions; ++repetition) {
    for (std::vector<double>& samples : series) {
      double sum = 0;
      for (int group = 0; group < world.pp * world.tp; ++group) {
        std::int64_t ready = std::numeric_limits<std::int64_t>::min();
        std::int64_t goes_on = ready;
        for (int member = 0; member < world.dp; ++member) {
          const auto& rank = times[ir::RankOf(world, group / world.tp, member, group % world.tp)];
          ready = LatestReady(rank, first, ready);
          goes_on = std::max(goes_on, rank[first + kGoesOn].begin_ns);
        }
        sum += static_cast<double>(goes_on - ready);
      }
      samples.push_back(sum / (world.pp * world.tp));
      first += kOperations;
    }
  }
  return series;
}

}  // namespace optimus::executor
