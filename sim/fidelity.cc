#include "sim/fidelity.h"

#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/ir/critical_path.h"
#include "sim/overlap.h"

namespace optimus::sim {
namespace {

constexpr double kMostSlowDown = 1000;
constexpr double kMostOversubscription = 1e6;

// A program, and the stage and lane of one that it sends messages to.
using Connection = std::tuple<std::size_t, int, int>;

std::set<Connection> ConnectionsOf(const ir::Schedule& schedule) {
  std::set<Connection> connections;
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    for (const ir::Operation& op : schedule.programs[p].operations) {
      if (op.kind == ir::OperationKind::kSend) connections.insert({p, op.peer_stage, op.peer_lane});
    }
  }
  return connections;
}

// Where a send stays in its node for some ranks and leaves it for others. `replicas`: compare all
// replicas, otherwise only the ranks of each lane.
std::string UnevenSend(const ir::Schedule& schedule, bool replicas) {
  for (const auto& [index, peer, peer_lane] : ConnectionsOf(schedule)) {
    const ir::Program& program = schedule.programs[index];
    const ir::SharedNodes shared =
        ir::SharedNodesOf(schedule, program.stage, peer, program.lane, peer_lane);
    if (replicas ? shared.any == shared.all : shared.groups_agree) continue;
    return absl::StrCat("sends from stage ", program.stage, " to stage ", peer,
                        " stay inside a node for some ranks and leave it for others");
  }
  return "";
}

const SlowGpu* FirstSlowGpu(const Options& options) {
  for (const SlowGpu& gpu : options.slow_gpus) {
    if (gpu.factor != 1.0) return &gpu;
  }
  return nullptr;
}

}  // namespace

std::string WhyGroupIsNotExact(const ir::Schedule& schedule, const Options& options) {
  if (const SlowGpu* slow = FirstSlowGpu(options); slow != nullptr) {
    return absl::StrCat("GPU ", slow->rank, " is slow");
  }
  if (options.oversubscription > 1.0 && schedule.gpus_per_node % schedule.world.tp != 0) {
    return absl::StrCat("the fabric is oversubscribed and tensor-parallel groups of ",
                        schedule.world.tp, " use the rails of ", schedule.gpus_per_node,
                        "-GPU nodes unevenly");
  }
  return UnevenSend(schedule, /*replicas=*/false);
}

std::string WhyFoldedIsNotExact(const ir::Schedule& schedule, const Options& options) {
  if (std::string reason = WhyGroupIsNotExact(schedule, options); !reason.empty()) return reason;
  if (options.oversubscription > 1.0) {
    return "data-parallel replicas share the oversubscribed uplinks of the fabric";
  }
  return UnevenSend(schedule, /*replicas=*/true);
}

absl::Status ValidateOptions(const ir::Schedule& schedule, const Options& options) {
  const int gpus = schedule.world.gpus();
  for (const SlowGpu& gpu : options.slow_gpus) {
    if (gpu.rank < 0 || gpu.rank >= gpus) {
      return absl::InvalidArgumentError(
          absl::StrCat("slow_gpus: rank ", gpu.rank, " is not one of 0 to ", gpus - 1));
    }
    if (!(gpu.factor > 0) || !(gpu.factor <= kMostSlowDown)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "slow_gpus: rank ", gpu.rank, ": factor ", gpu.factor, " is not above 0 and at most ",
          kMostSlowDown, "; hint: 1.1 means 10 % slower"));
    }
  }
  if (options.nodes_per_leaf < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("nodes_per_leaf: ", options.nodes_per_leaf, " is below 1"));
  }
  if (!(options.oversubscription >= 1.0) || !(options.oversubscription <= kMostOversubscription)) {
    return absl::InvalidArgumentError(absl::StrCat("oversubscription: ", options.oversubscription,
                                                   " is not from 1 to ", kMostOversubscription,
                                                   "; hint: 2 means 2:1"));
  }
  return absl::OkStatus();
}

namespace {

absl::Status ValidateInterference(const Interference& factors) {
  for (const double factor :
       {factors.kernel_under_nvlink, factors.kernel_under_nic, factors.collective_under_kernel}) {
    if (factor >= 1 && factor <= kMostInterference) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "interference: the cost model has a factor of ", factor, ", which is not from 1 to ",
        kMostInterference, "; hint: 1.2 means 20 % slower"));
  }
  return absl::OkStatus();
}

}  // namespace

const char* ToString(Fidelity fidelity) {
  switch (fidelity) {
    case Fidelity::kAuto:
      return "auto";
    case Fidelity::kFolded:
      return "folded";
    case Fidelity::kGroup:
      return "group";
    case Fidelity::kGpu:
      return "gpu";
  }
  return "invalid";
}

absl::StatusOr<Fidelity> ParseFidelity(const std::string& text) {
  for (const Fidelity fidelity :
       {Fidelity::kAuto, Fidelity::kFolded, Fidelity::kGroup, Fidelity::kGpu}) {
    if (text == ToString(fidelity)) return fidelity;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("fidelity: \"", text, "\" is not one of auto, folded, group, gpu"));
}

absl::StatusOr<FidelityChoice> ChooseFidelity(const ir::Schedule& schedule, const CostModel& costs,
                                              const Options& options) {
  OPTIMUS_RETURN_IF_ERROR(ValidateOptions(schedule, options));
  if (options.interference) OPTIMUS_RETURN_IF_ERROR(ValidateInterference(costs.interference()));
  const std::string not_folded = WhyFoldedIsNotExact(schedule, options);
  const std::string not_group = WhyGroupIsNotExact(schedule, options);
  if (options.fidelity == Fidelity::kAuto) {
    if (not_folded.empty()) {
      return FidelityChoice{Fidelity::kFolded,
                            "All data-parallel replicas do the same at the same time and share no "
                            "link, so one stands for all."};
    }
    if (not_group.empty()) {
      return FidelityChoice{
          Fidelity::kGroup,
          absl::StrCat("The GPUs of a ", schedule.lanes == 1 ? "tensor-parallel group" : "lane",
                       " do the same at the same time, but replicas are run apart: ", not_folded,
                       ".")};
    }
    return FidelityChoice{Fidelity::kGpu, absl::StrCat("Every GPU is run: ", not_group, ".")};
  }
  const std::string& why_not = options.fidelity == Fidelity::kFolded  ? not_folded
                               : options.fidelity == Fidelity::kGroup ? not_group
                                                                      : std::string();
  if (!why_not.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("fidelity ", ToString(options.fidelity), " is not exact here: ", why_not,
                     "; hint: use ", not_group.empty() ? "group or gpu" : "gpu", ", or auto"));
  }
  return FidelityChoice{options.fidelity, "It was asked for, and it is exact here."};
}

}  // namespace optimus::sim
