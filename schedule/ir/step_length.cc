#include "schedule/ir/step_length.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schedule/ir/blocked.h"
#include "schedule/ir/critical_path.h"

namespace optimus::ir {
namespace {

static_assert(kLongestFixed == kLongestStep, "what may stand in a Schedule may be run");

double InPicoseconds(Picoseconds time) { return static_cast<double>(time.value()); }

std::string Text(double picoseconds) {
  return absl::StrCat(picoseconds, " ps (",
                      picoseconds / static_cast<double>(kPicosecondsPerSecond), " s)");
}

struct Price {
  double duration = 0;  // picoseconds
  Bytes wire_bytes;
};

// Every piece of work priced once.
class Prices {
 public:
  Prices(const Schedule& schedule, const CostModel& costs, double slow_down) {
    for (const Kernel& kernel : schedule.kernels) {
      kernels_.push_back({InPicoseconds(costs.KernelTime(kernel)) * slow_down, Bytes(0)});
    }
    std::vector<GroupShape> shapes;
    for (const Group& group : schedule.groups) shapes.push_back(ShapeOf(schedule, group));
    for (const Collective& c : schedule.collectives) {
      collectives_.push_back(PriceOf(costs, costs.CollectiveCost(c.work, shapes[c.group])));
    }
    for (const Transfer& transfer : schedule.transfers) {
      sends_.push_back(PriceOfSend(costs, transfer));
    }
  }

  Price Of(const Operation& op) const {
    switch (op.kind) {
      case OperationKind::kKernel:
        return kernels_[op.work];
      case OperationKind::kCollective:
        return collectives_[op.work];
      case OperationKind::kSend:
        return sends_[op.work];
      case OperationKind::kReceive:
        break;  // takes no time of its own
    }
    return {};
  }

 private:
  static Price PriceOf(const CostModel& costs, const TransferCost& cost) {
    return {InPicoseconds(UncontendedTime(costs, cost)), cost.wire_bytes};
  }
  // The longer of the two ways that it can go.
  static Price PriceOfSend(const CostModel& costs, const Transfer& transfer) {
    if (transfer.fixed > Picoseconds(0) || transfer.free()) {
      return {InPicoseconds(transfer.fixed), Bytes(0)};
    }
    const Price in_node = PriceOf(costs, costs.SendCost(transfer.bytes, true));
    const Price between_nodes = PriceOf(costs, costs.SendCost(transfer.bytes, false));
    return {std::max(in_node.duration, between_nodes.duration),
            std::max(in_node.wire_bytes, between_nodes.wire_bytes)};
  }

  std::vector<Price> kernels_, collectives_, sends_;  // by index of work
};

absl::Status TooLong(const Schedule& schedule, double sum, OperationRef longest, double duration) {
  return absl::InvalidArgumentError(absl::StrCat(
      "schedule '", schedule.name, "': its operations last ", Text(sum),
      " in all, more than the limit of ", Text(InPicoseconds(kLongestStep)), "; the longest is ",
      NameOperation(schedule, longest), " with ", Text(duration),
      "; hint: a kernel, message, profile number or slow-GPU factor is far too large"));
}

absl::Status TooManyBytes(const Schedule& schedule, OperationRef ref, Bytes bytes) {
  return absl::InvalidArgumentError(absl::StrCat(
      "schedule '", schedule.name, "': ", NameOperation(schedule, ref), " moves ", bytes.value(),
      " bytes over one link, more than the limit of ", kMostWireBytes.value(),
      "; hint: a message is far too large, or an efficiency of the profile far too small"));
}

}  // namespace

absl::Status CheckLength(const Schedule& schedule, const CostModel& costs,
                         double largest_slow_down) {
  const Prices prices(schedule, costs, std::max(largest_slow_down, 1.0));
  double sum = 0;
  double longest_duration = -1;
  OperationRef longest;
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    const Program& program = schedule.programs[p];
    for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
      const OperationRef ref{static_cast<std::int32_t>(p), id};
      const Price price = prices.Of(program.operations[id]);
      if (price.wire_bytes > kMostWireBytes) return TooManyBytes(schedule, ref, price.wire_bytes);
      sum += price.duration;
      if (price.duration <= longest_duration) continue;
      longest_duration = price.duration;
      longest = ref;
    }
  }
  if (sum <= InPicoseconds(kLongestStep)) return absl::OkStatus();
  return TooLong(schedule, sum, longest, longest_duration);
}

}  // namespace optimus::ir
