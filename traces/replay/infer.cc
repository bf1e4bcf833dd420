#include "traces/replay/infer.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace optimus::traces {
namespace {

class Inference {
 public:
  Inference(RecordedRank& rank, RecordingTables& tables, const std::vector<std::string>& names)
      : rank_(rank), tables_(tables), names_(names), waits_(rank.ops.size(), kNone) {}

  void Go() {
    Sort();
    std::vector<std::uint32_t> last(rank_.lanes.size(), kNone);
    for (std::uint32_t op = 0; op < rank_.ops.size(); ++op) {
      const RecordedOp& recorded = rank_.ops[op];
      if (recorded.kind == OpKind::kHost || !recorded.timed()) continue;
      const auto lane = static_cast<std::size_t>(recorded.lane);
      const bool communicates = recorded.kind == OpKind::kCommunication;
      waits_[op] = communicates ? KernelBefore(op) : CommunicationBefore(op, last[lane]);
      last[lane] = op;
      if (waits_[op] != kNone) Note(op, communicates);
    }
    Rewrite();
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr Picoseconds kUnknown{-1};

  // When the call that launched it began.
  Picoseconds LaunchOf(std::uint32_t op) const {
    for (const Dependency& dependency : rank_.DependenciesOf(rank_.ops[op])) {
      if (dependency.kind == DependencyKind::kLaunch) return rank_.ops[dependency.op].start;
    }
    return kUnknown;
  }

  void Sort() {
    for (std::uint32_t op = 0; op < rank_.ops.size(); ++op) {
      const RecordedOp& recorded = rank_.ops[op];
      if (recorded.kind == OpKind::kHost || !recorded.timed()) continue;
      if (recorded.kind == OpKind::kCommunication) {
        communications_.emplace_back(recorded.end, op);
        continue;
      }
      kernels_.emplace_back(recorded.end, op);
      if (const Picoseconds launch = LaunchOf(op); launch != kUnknown) {
        launched_.emplace_back(launch, op);
      }
    }
    for (auto* list : {&communications_, &kernels_, &launched_}) {
      std::sort(list->begin(), list->end());
    }
  }

  using ByTime = std::vector<std::pair<Picoseconds, std::uint32_t>>;
  // The last of `list` before (or at, where `at`) a time.
  static std::uint32_t LastBefore(const ByTime& list, Picoseconds time, bool at) {
    const auto after =
        at ? std::upper_bound(list.begin(), list.end(), std::make_pair(time, kNone))
           : std::lower_bound(list.begin(), list.end(), std::make_pair(time, std::uint32_t{0}));
    return after == list.begin() ? kNone : std::prev(after)->second;
  }

  std::uint32_t KernelBefore(std::uint32_t op) const {
    const RecordedOp& communication = rank_.ops[op];
    const Picoseconds launch = LaunchOf(op);
    const std::uint32_t kernel = launch == kUnknown
                                     ? LastBefore(kernels_, communication.start, true)
                                     : LastBefore(launched_, launch, false);
    if (kernel == kNone || rank_.ops[kernel].lane == communication.lane) return kNone;
    return rank_.ops[kernel].end <= communication.start ? kernel : kNone;
  }

  std::uint32_t CommunicationBefore(std::uint32_t op, std::uint32_t before_on_lane) const {
    const RecordedOp& kernel = rank_.ops[op];
    const std::uint32_t communication = LastBefore(communications_, kernel.start, true);
    if (communication == kNone || rank_.ops[communication].lane == kernel.lane) return kNone;
    const Picoseconds end = rank_.ops[communication].end;
    if (kernel.start - end > kWakesWithin) return kNone;
    if (before_on_lane != kNone && rank_.ops[before_on_lane].end >= end) return kNone;
    const Picoseconds launch = LaunchOf(op);
    return launch == kUnknown || launch < end ? communication : kNone;
  }

  void Note(std::uint32_t op, bool communicates) {
    const RecordedOp& recorded = rank_.ops[op];
    tables_.Note({communicates ? "communication without events, inferred to wait for the kernels "
                                 "launched before it"
                               : "kernel without events, inferred to have waited for the "
                                 "communication that had just ended",
                  "as PyTorch's process groups do; it moves with what it waits for", rank_.rank,
                  names_[static_cast<std::size_t>(recorded.name)], recorded.start, 1});
  }

  void Rewrite() {
    std::vector<Dependency> dependencies;
    dependencies.reserve(rank_.dependencies.size() + waits_.size());
    for (std::uint32_t op = 0; op < rank_.ops.size(); ++op) {
      RecordedOp& recorded = rank_.ops[op];
      const auto first = static_cast<std::uint32_t>(dependencies.size());
      for (const Dependency& dependency : rank_.DependenciesOf(recorded)) {
        dependencies.push_back(dependency);
      }
      if (waits_[op] != kNone) dependencies.push_back({waits_[op], DependencyKind::kEvent});
      recorded.first_dependency = first;
      recorded.dependency_count = static_cast<std::uint32_t>(dependencies.size()) - first;
    }
    rank_.dependencies = std::move(dependencies);
  }

  RecordedRank& rank_;
  RecordingTables& tables_;
  const std::vector<std::string>& names_;
  std::vector<std::uint32_t> waits_;            // by operation
  ByTime communications_, kernels_, launched_;  // by end, by end, by launch
};

bool HasEvents(const RecordedRank& rank) {
  return std::any_of(rank.dependencies.begin(), rank.dependencies.end(),
                     [](const Dependency& d) { return d.kind == DependencyKind::kEvent; });
}

}  // namespace

void InferStreamWaits(Recording& recording) {
  if (recording.format != "kineto") return;
  RecordingTables tables(recording);
  for (RecordedRank& rank : recording.ranks) {
    if (!HasEvents(rank)) Inference(rank, tables, recording.names).Go();
  }
}

}  // namespace optimus::traces
