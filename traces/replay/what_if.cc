#include "traces/replay/what_if.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "traces/replay/price.h"

namespace optimus::traces {
namespace {

Picoseconds Scale(Picoseconds time, double factor) {
  return Picoseconds(RoundSaturated(static_cast<double>(time.value()) * factor));
}

bool IsPosted(const ReplayGraph& graph, TaskId task) {
  return graph.recording.messages == MessageRule::kEager &&
         graph.communication(task)->kind == CommunicationKind::kReceive;
}

// Sets the duration of a communication: of its transfer, or its own.
void SetDuration(const ReplayGraph& graph, TaskId task, Picoseconds duration,
                 Durations& durations) {
  const std::int32_t transfer = graph.tasks[task].transfer;
  if (transfer >= 0) {
    durations.transfer[static_cast<std::size_t>(transfer)] = duration;
  } else {
    durations.task[task] = duration;
  }
}

Picoseconds DurationOf(const ReplayGraph& graph, TaskId task, const Durations& durations) {
  const std::int32_t transfer = graph.tasks[task].transfer;
  return transfer >= 0 ? durations.transfer[static_cast<std::size_t>(transfer)]
                       : durations.task[task];
}

class Applier {
 public:
  Applier(const ReplayGraph& graph, const OpClasses& classes, const WhatIf& what_if, Durations base)
      : graph_(graph), classes_(classes), what_if_(what_if) {
    result_.durations = std::move(base);
  }

  absl::StatusOr<WhatIfDurations> Apply() {
    ScaleKernels(-1, what_if_.compute_scale);
    for (const auto& [rank, factor] : what_if_.stragglers) {
      if (absl::Status status = SlowDown(rank, factor); !status.ok()) return status;
    }
    if (what_if_.before != nullptr && graph_.timed) ChangeLinks();
    for (const std::string& selector : what_if_.drop) {
      if (absl::Status status = Drop(selector); !status.ok()) return status;
    }
    if (absl::Status status = CheckLength(graph_, result_.durations); !status.ok()) return status;
    for (auto& [what, kept] : kept_) {
      kept.what = what;
      result_.kept.push_back(std::move(kept));
    }
    return std::move(result_);
  }

 private:
  // `rank`: index; negative: all.
  void ScaleKernels(std::int32_t rank, double factor) {
    if (factor == 1) return;
    for (TaskId task = 0; task < graph_.tasks.size(); ++task) {
      if (rank >= 0 && graph_.tasks[task].rank != rank) continue;
      if (graph_.op(task).kind != OpKind::kCompute) continue;
      Picoseconds& duration = result_.durations.task[task];
      duration = Scale(duration, factor);
    }
  }

  absl::Status SlowDown(std::int32_t rank, double factor) {
    const std::vector<RecordedRank>& ranks = graph_.recording.ranks;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i].rank != rank) continue;
      ScaleKernels(static_cast<std::int32_t>(i), factor);
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "--straggler=", rank, ":", factor, ": rank ", rank, " was not recorded; the trace has ",
        ranks.size(), ranks.size() == 1 ? " rank, " : " ranks, from ", ranks.front().rank,
        ranks.size() == 1 ? "" : absl::StrCat(" to ", ranks.back().rank)));
  }

  void ChangeLinks() {
    std::vector<bool> seen(graph_.transfers.size(), false);
    for (TaskId task = 0; task < graph_.tasks.size(); ++task) {
      if (graph_.communication(task) == nullptr || IsPosted(graph_, task)) continue;
      const std::int32_t transfer = graph_.tasks[task].transfer;
      if (transfer >= 0 && seen[static_cast<std::size_t>(transfer)]) continue;
      if (transfer >= 0) seen[static_cast<std::size_t>(transfer)] = true;
      ChangeLink(task);
    }
  }

  void ChangeLink(TaskId task) {
    ++result_.communications;
    const Picoseconds recorded = DurationOf(graph_, task, result_.durations);
    const absl::StatusOr<Picoseconds> before = PriceOf(graph_, task, *what_if_.before);
    if (!before.ok()) {
      KeptTime& kept = kept_[absl::StrCat(ToString(graph_.communication(task)->kind), " ",
                                          before.status().message())];
      ++kept.count;
      kept.time += recorded;
      return;
    }
    const absl::StatusOr<Picoseconds> after = PriceOf(graph_, task, *what_if_.after);
    if (!after.ok() || *before <= Picoseconds(0) || *after == *before) return;
    const double ratio = static_cast<double>(after->value()) / static_cast<double>(before->value());
    SetDuration(graph_, task, Scale(recorded, ratio), result_.durations);
    ++result_.changed;
  }

  bool Fits(TaskId task, const std::string& selector) const {
    return selector == "all" || selector == RoleOfTask(graph_, task) ||
           selector == ToString(graph_.communication(task)->kind) ||
           selector == classes_.names[static_cast<std::size_t>(classes_.of_task[task])];
  }

  absl::Status Drop(const std::string& selector) {
    bool any = false;
    for (TaskId task = 0; task < graph_.tasks.size(); ++task) {
      if (graph_.communication(task) == nullptr || !Fits(task, selector)) continue;
      any = true;
      SetDuration(graph_, task, Picoseconds(0), result_.durations);
    }
    if (any) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("--drop-exposed=", selector,
                                                   ": no communication of the trace is '", selector,
                                                   "'; it has: ", absl::StrJoin(Known(), ", ")));
  }

  std::set<std::string> Known() const {
    std::set<std::string> known = {"all"};
    for (TaskId task = 0; task < graph_.tasks.size(); ++task) {
      if (graph_.communication(task) == nullptr) continue;
      known.insert(classes_.names[static_cast<std::size_t>(classes_.of_task[task])]);
      if (std::string role = RoleOfTask(graph_, task); !role.empty()) known.insert(std::move(role));
    }
    return known;
  }

  const ReplayGraph& graph_;
  const OpClasses& classes_;
  const WhatIf& what_if_;
  WhatIfDurations result_;
  std::map<std::string, KeptTime> kept_;
};

// The roofline of what the file says of a kernel: both its FLOPs and its bytes have to be done.
Picoseconds PriceOfKernel(const Work& work, const CostModel& costs) {
  Kernel compute, memory;
  compute.kind = KernelKind::kGemm;
  compute.flops = Flops(work.flops);
  memory.kind = KernelKind::kMemoryBound;
  memory.bytes = work.bytes;
  Picoseconds time;
  if (work.flops > 0) time = costs.KernelTime(compute);
  if (work.bytes > Bytes(0)) time = std::max(time, costs.KernelTime(memory));
  return time;
}

absl::Status PriceTask(const ReplayGraph& graph, TaskId task, const CostModel& costs,
                       Durations& durations) {
  if (DurationOf(graph, task, durations) > Picoseconds(0)) return absl::OkStatus();
  const RecordedOp& op = graph.op(task);
  if (op.kind == OpKind::kCommunication) {
    if (IsPosted(graph, task)) return absl::OkStatus();
    const absl::StatusOr<Picoseconds> price = PriceOf(graph, task, costs);
    if (price.ok()) {
      SetDuration(graph, task, *price, durations);
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", graph.rank_of(task), ", '", graph.name(task), "': has no recorded time, and is ",
        ToString(graph.communication(task)->kind), " ", price.status().message(),
        "; hint: give the groups' file (--groups), or a trace with times"));
  }
  if (op.work < 0) return absl::OkStatus();
  const RecordedRank& rank =
      graph.recording.ranks[static_cast<std::size_t>(graph.tasks[task].rank)];
  durations.task[task] = PriceOfKernel(rank.works[static_cast<std::size_t>(op.work)], costs);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WhatIfDurations> Apply(const ReplayGraph& graph, const OpClasses& classes,
                                      const WhatIf& what_if, Durations base) {
  return Applier(graph, classes, what_if, std::move(base)).Apply();
}

absl::StatusOr<Durations> PriceUntimed(const ReplayGraph& graph, const CostModel& costs) {
  Durations durations = RecordedDurations(graph);
  for (TaskId task = 0; task < graph.tasks.size(); ++task) {
    if (absl::Status status = PriceTask(graph, task, costs, durations); !status.ok()) return status;
  }
  if (absl::Status status = CheckLength(graph, durations); !status.ok()) return status;
  return durations;
}

Durations WithoutClass(const ReplayGraph& graph, const OpClasses& classes, std::int32_t cls,
                       Durations durations) {
  for (TaskId task = 0; task < graph.tasks.size(); ++task) {
    if (classes.of_task[task] == cls) SetDuration(graph, task, Picoseconds(0), durations);
  }
  return durations;
}

Durations WithoutLags(const ReplayGraph& graph, bool of_host, Durations durations) {
  for (TaskId task = 0; task < graph.tasks.size(); ++task) {
    if ((graph.op(task).kind == OpKind::kHost) != of_host) continue;
    durations.lag[task] = std::min(durations.lag[task], Picoseconds(0));
  }
  return durations;
}

}  // namespace optimus::traces
