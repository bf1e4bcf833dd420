#include "validation/compare_work.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "validation/span_times.h"

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

absl::Status CheckAreOf(const ir::Schedule& schedule, Spans spans) {
  while (!spans.empty()) {
    const ir::Span last = TakeRank(spans).back();
    if (last.rank < 0 || last.rank >= schedule.world.gpus()) {
      return absl::InvalidArgumentError(absl::StrCat("rank ", last.rank, ": schedule '",
                                                     schedule.name, "' has ", schedule.world.gpus(),
                                                     " ranks"));
    }
    const std::size_t count =
        schedule.programs[ProgramOfRank(schedule, last.rank)].operations.size();
    if (last.operation >= count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "rank ", last.rank, ": operation ", last.operation, " is not in schedule '",
          schedule.name, "', which has ", count, " there; hint: give the schedule that was run"));
    }
  }
  return absl::OkStatus();
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
  WorkTable(const ir::Schedule& schedule, const ir::Timeline& simulated,
            const ir::Timeline& measured)
      : schedule_(schedule), simulated_(schedule, simulated), measured_(schedule, measured) {}

  // The spans of one rank, by operation, the same operations in both.
  void Add(Spans simulated, Spans measured) {
    const ir::Program& program =
        schedule_.programs[ProgramOfRank(schedule_, measured.front().rank)];
    for (std::size_t i = 0; i < measured.size(); ++i) {
      Add(program.operations[measured[i].operation], simulated[i], measured[i]);
    }
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
    row.transfer = op.kind != ir::OperationKind::kKernel;
    row.simulated_s += ToSeconds(simulated_.TimeOf(simulated));
    row.measured_s += ToSeconds(measured_.TimeOf(measured));
  }

  const ir::Schedule& schedule_;
  SpanTimes simulated_, measured_;
  std::vector<WorkComparison> rows_;
  absl::flat_hash_map<std::string, std::size_t> index_;  // into rows_
};

}  // namespace

absl::Status CompareWork(const ir::Timeline& simulated, const ir::Timeline& measured,
                         const ir::Schedule* schedule, Comparison& comparison) {
  OPTIMUS_RETURN_IF_ERROR(CheckSpans("simulated", simulated.spans));
  OPTIMUS_RETURN_IF_ERROR(CheckSpans("measured", measured.spans));
  std::optional<WorkTable> table;
  if (schedule != nullptr) {
    OPTIMUS_RETURN_IF_ERROR(CheckAreOf(*schedule, simulated.spans));
    OPTIMUS_RETURN_IF_ERROR(CheckAreOf(*schedule, measured.spans));
    table.emplace(*schedule, simulated, measured);
  }
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
    if (table) table->Add(a, b);
  }
  comparison.operations_only_in_one += static_cast<std::int64_t>(left.size() + right.size());
  if (table) comparison.work = table->Take();
  return absl::OkStatus();
}

}  // namespace optimus::validation
