#include <algorithm>
#include <cmath>

#include "base/quantile.h"
#include "base/status_macros.h"
#include "executor/measure/probes.h"
#include "executor/measure/schedule_writer.h"

namespace optimus::executor {
namespace {

using Ids = std::vector<std::uint32_t>;

// At least so many of the longer one, and as many of the other as last about as long.
constexpr double kFewest = 6;
constexpr double kMost = 500;

struct Counts {
  int kernels = 0, collectives = 0;
};
Counts CountsFor(const InterferenceCase& interference) {
  const double kernel = std::max(interference.kernel_ns, 1.0);
  const double collective = std::max(interference.collective_ns, 1.0);
  const double duration = kFewest * std::max(kernel, collective);
  return {static_cast<int>(std::min(std::ceil(duration / kernel), kMost)),
          static_cast<int>(std::min(std::ceil(duration / collective), kMost))};
}

class InterferenceWriter {
 public:
  InterferenceWriter(ScheduleWriter& writer, int stage, Counts counts)
      : writer_(writer), stage_(stage), counts_(counts) {}

  struct Works {
    std::int32_t kernel = 0, collective = 0, gathering = 0;
  };

  InterferenceProbe::Repetition Write(const Works& works) {
    InterferenceProbe::Repetition ids;
    ids.collectives = {Gather(works)};
    for (int i = 0; i < counts_.collectives; ++i) {
      ids.collectives.push_back(writer_.AddCollective(stage_, works.collective));
    }
    ids.kernels = {writer_.AddKernel(stage_, writer_.moment(), {ids.collectives.back()})};
    for (int i = 0; i < counts_.kernels; ++i) {
      ids.kernels.push_back(writer_.AddKernel(stage_, works.kernel));
    }
    last_ = ids.kernels.back();
    const std::uint32_t gathered = Gather(works);
    const std::uint32_t start = writer_.AddKernel(stage_, writer_.moment(), {gathered});
    ids.kernels_together = {start};
    ids.collectives_together = {
        writer_.AddCollective(stage_, works.collective, {start})};  // a moment to get going
    Together(works, ids);
    last_ = writer_.AddKernel(stage_, writer_.moment(), {ids.collectives_together.back()});
    return ids;
  }

 private:
  std::uint32_t Gather(const Works& works) {
    const Ids after = last_ > 0 ? Ids{last_} : Ids{};
    return writer_.AddCollective(stage_, works.gathering, after);
  }

  // In turns, so that a device that runs what it gets at once gets both.
  void Together(const Works& works, InterferenceProbe::Repetition& ids) {
    const int most = std::max(counts_.kernels, counts_.collectives);
    for (int i = 0; i < most; ++i) {
      if ((i + 1) * counts_.kernels / most > i * counts_.kernels / most) {
        ids.kernels_together.push_back(writer_.AddKernel(stage_, works.kernel));
      }
      if ((i + 1) * counts_.collectives / most > i * counts_.collectives / most) {
        ids.collectives_together.push_back(writer_.AddCollective(stage_, works.collective));
      }
    }
  }

  ScheduleWriter& writer_;
  int stage_;
  Counts counts_;
  std::uint32_t last_ = 0;  // what the next repetition waits for
};

// Of operations one after the other, all but the first: how long each took after the one before it.
struct Interval {
  std::int64_t begin_ns = 0, end_ns = 0;
  double length() const { return static_cast<double>(end_ns - begin_ns); }
};
std::vector<Interval> Intervals(const std::vector<OperationTime>& rank, const Ids& ids) {
  std::vector<Interval> intervals;
  for (std::size_t i = 1; i < ids.size(); ++i) {
    intervals.push_back({rank[ids[i - 1]].end_ns, rank[ids[i]].end_ns});
  }
  return intervals;
}

std::vector<double> Lengths(const std::vector<Interval>& intervals) {
  std::vector<double> lengths(intervals.size());
  std::transform(intervals.begin(), intervals.end(), lengths.begin(),
                 [](const Interval& interval) { return interval.length(); });
  return lengths;
}

std::vector<double> LengthsWithin(const std::vector<Interval>& intervals,
                                  const std::vector<Interval>& others) {
  std::vector<double> lengths;
  for (const Interval& interval : intervals) {
    if (interval.begin_ns < others.front().begin_ns || interval.end_ns > others.back().end_ns) {
      continue;
    }
    lengths.push_back(interval.length());
  }
  return lengths;
}

struct Mean {
  double sum = 0;
  int count = 0;
  // Of what was seen together, relative to alone.
  void Add(const std::vector<double>& together, const std::vector<double>& alone) {
    if (together.empty() || alone.empty()) return;
    const double base = Median(alone);
    if (base <= 0) return;
    sum += Median(together) / base;
    ++count;
  }
  void AppendTo(std::vector<double>& values) const {
    if (count > 0) values.push_back(sum / count);
  }
};

}  // namespace

absl::StatusOr<InterferenceProbe> MakeInterferenceProbe(const InterferenceCase& interference,
                                                        int repetitions, ProbeWorld world) {
  const TransferCase& transfer = interference.transfer;
  if (transfer.sizes.empty()) {
    return absl::InternalError("interference: the transfer has no size");
  }
  OPTIMUS_ASSIGN_OR_RETURN(const GroupPlacement placement, PlaceGroups(transfer, world));
  ScheduleWriter writer("measure interference", placement.world, world.ranks_per_node);
  const std::int32_t group = writer.AddGroup(placement.group);
  InterferenceWriter::Works works;
  works.kernel = writer.AddWork(interference.kernel);
  works.collective =
      writer.AddWork({transfer.kind, ToString(transfer.kind), transfer.sizes.back()}, group);
  works.gathering = writer.AddWork({CollectiveKind::kAllReduce, "gathering", Bytes(4)}, group);
  InterferenceProbe probe;
  for (int stage = 0; stage < placement.world.pp; ++stage) {
    InterferenceWriter program(writer, stage, CountsFor(interference));
    probe.repetitions.clear();
    for (int repetition = 0; repetition <= repetitions; ++repetition) {
      writer.SetRepetition(repetition);
      probe.repetitions.push_back(program.Write(works));
    }
  }
  probe.repetitions.erase(probe.repetitions.begin());
  probe.schedule = writer.Take();
  return probe;
}

InterferenceFactors ReadInterference(const InterferenceProbe& probe, const StepTimes& times) {
  InterferenceFactors factors;
  for (const InterferenceProbe::Repetition& ids : probe.repetitions) {
    Mean kernel;
    Mean collective;
    for (const std::vector<OperationTime>& rank : times) {
      const std::vector<Interval> kernels = Intervals(rank, ids.kernels_together);
      const std::vector<Interval> collectives = Intervals(rank, ids.collectives_together);
      kernel.Add(LengthsWithin(kernels, collectives), Lengths(Intervals(rank, ids.kernels)));
      collective.Add(LengthsWithin(collectives, kernels),
                     Lengths(Intervals(rank, ids.collectives)));
    }
    kernel.AppendTo(factors.kernel);
    collective.AppendTo(factors.collective);
  }
  return factors;
}

}  // namespace optimus::executor
