#include "validation/compare_work.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace optimus::validation {
namespace {

using Spans = absl::Span<const ir::Span>;

absl::Status CheckSpans(const std::string& which, const std::vector<ir::Span>& spans) {
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const ir::Span& span = spans[i];
    const bool ascends = i == 0 || std::tie(spans[i - 1].rank, spans[i - 1].operation) <
                                       std::tie(span.rank, span.operation);
    if (ascends && span.start <= span.end) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        which, " timeline: span of rank ", span.rank, ", operation ", span.operation,
        ascends ? " ends before it starts" : " is out of order (by rank, then operation)",
        "; hint: write the file again"));
  }
  return absl::OkStatus();
}

// Takes the spans of the first rank off `spans`.
Spans TakeRank(Spans& spans) {
  const auto end = std::find_if(spans.begin(), spans.end(), [&](const ir::Span& span) {
    return span.rank != spans.front().rank;
  });
  const Spans rank = spans.first(static_cast<std::size_t>(end - spans.begin()));
  spans.remove_prefix(rank.size());
  return rank;
}

absl::Status CheckSameOperations(Spans simulated, Spans measured) {
  const auto what = [&](std::size_t i) {
    return absl::StrCat("rank ", measured.front().rank, ": operation ",
                        i < simulated.size() ? simulated[i].operation : measured[i].operation,
                        " is in one timeline only");
  };
  const std::size_t common = std::min(simulated.size(), measured.size());
  std::size_t i = 0;
  while (i < common && simulated[i].operation == measured[i].operation) ++i;
  if (i == common && simulated.size() == measured.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what(i), " (simulated ", simulated.size(), ", measured ", measured.size(),
      " operations); hint: they are of different schedules, or one of them is not complete"));
}

// What an operation does; empty for a receive, which takes no time of its own.
std::string NameOf(const ir::Schedule& schedule, const ir::Operation& op) {
  const auto join = [](const char* kind, const std::string& name) {
    return name.empty() ? std::string(kind) : absl::StrCat(kind, " ", name);
  };
  switch (op.kind) {
    case ir::OperationKind::kKernel: {
      const Kernel& kernel = schedule.kernels[op.work];
      return join(ToString(kernel.kind), kernel.name);
    }
    case ir::OperationKind::kCollective: {
      const CollectiveWork& work = schedule.collectives[op.work].work;
      return join(ToString(work.kind), work.name);
    }
    case ir::OperationKind::kSend:
      return join("send", schedule.transfers[op.work].name);
    case ir::OperationKind::kReceive:
      return "";
  }
  return "";
}

class WorkTable {
 public:
  explicit WorkTable(const ir::Schedule& schedule) : schedule_(schedule) {}

  // The spans of one rank, by operation, the same operations in both.
  absl::Status Add(Spans simulated, Spans measured) {
    const ir::Parallelism& world = schedule_.world;
    const std::int32_t rank = measured.front().rank;
    if (rank < 0 || rank >= world.gpus()) {
      return absl::InvalidArgumentError(absl::StrCat("rank ", rank, ": schedule '", schedule_.name,
                                                     "' has ", world.gpus(), " ranks"));
    }
    const int stage = rank / (world.dp * world.tp);
    const int lane = ir::LaneOf(schedule_, rank % world.tp);
    const ir::Program& program = schedule_.programs[ir::ProgramIndex(schedule_, stage, lane)];
    if (measured.back().operation >= program.operations.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, ": operation ", measured.back().operation,
                       " is not in schedule '", schedule_.name, "', which has ",
                       program.operations.size(), " there; hint: give the schedule that was run"));
    }
    for (std::size_t i = 0; i < measured.size(); ++i) {
      Add(program.operations[measured[i].operation], simulated[i], measured[i]);
    }
    return absl::OkStatus();
  }

  std::vector<WorkComparison> Take() {
    std::sort(rows_.begin(), rows_.end(), [](const WorkComparison& a, const WorkComparison& b) {
      return std::tie(b.measured_s, a.name) < std::tie(a.measured_s, b.name);
    });
    return std::move(rows_);
  }

 private:
  void Add(const ir::Operation& op, const ir::Span& simulated, const ir::Span& measured) {
    std::string name = NameOf(schedule_, op);
    if (name.empty()) return;
    const auto [at, is_new] = index_.try_emplace(name, rows_.size());
    if (is_new) rows_.push_back({.name = std::move(name)});
    WorkComparison& row = rows_[at->second];
    ++row.operations;
    row.simulated_s += ToSeconds(simulated.end - simulated.start);
    row.measured_s += ToSeconds(measured.end - measured.start);
  }

  const ir::Schedule& schedule_;
  std::vector<WorkComparison> rows_;
  absl::flat_hash_map<std::string, std::size_t> index_;  // into rows_
};

}  // namespace

absl::Status CompareWork(const ir::Timeline& simulated, const ir::Timeline& measured,
                         const ir::Schedule* schedule, Comparison& comparison) {
  OPTIMUS_RETURN_IF_ERROR(CheckSpans("simulated", simulated.spans));
  OPTIMUS_RETURN_IF_ERROR(CheckSpans("measured", measured.spans));
  const ir::Schedule none;
  WorkTable table(schedule == nullptr ? none : *schedule);
  Spans left = simulated.spans, right = measured.spans;
  while (!left.empty() && !right.empty()) {
    if (left.front().rank != right.front().rank) {
      Spans& alone = left.front().rank < right.front().rank ? left : right;
      comparison.operations_only_in_one += static_cast<std::int64_t>(TakeRank(alone).size());
      continue;
    }
    const Spans a = TakeRank(left), b = TakeRank(right);
    OPTIMUS_RETURN_IF_ERROR(CheckSameOperations(a, b));
    comparison.operations_compared += static_cast<std::int64_t>(b.size());
    if (schedule != nullptr) OPTIMUS_RETURN_IF_ERROR(table.Add(a, b));
  }
  comparison.operations_only_in_one += static_cast<std::int64_t>(left.size() + right.size());
  comparison.work = table.Take();
  return absl::OkStatus();
}

}  // namespace optimus::validation
