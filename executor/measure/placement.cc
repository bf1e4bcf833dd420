// Groups and pairs of ranks that are shaped like those of a transfer.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "executor/measure/probes.h"

namespace optimus::executor {
namespace {

std::string Describe(const TransferCase& transfer) {
  return absl::StrCat(transfer.send ? "message" : ToString(transfer.kind), " over ",
                      transfer.group.ranks, " ranks (",
                      transfer.scope == LinkScope::kNic ? "between nodes" : "in a node", ")");
}

}  // namespace

// Members are neighbours, or, between nodes with k of them in each, as far apart as puts k in a
// node.
absl::StatusOr<GroupPlacement> PlaceGroups(const TransferCase& transfer, ProbeWorld world) {
  const int members = transfer.group.ranks;
  if (members < 1 || world.ranks % members != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        Describe(transfer), " cannot be measured by ", world.ranks,
        " ranks; hint: start as many ranks as the schedule has, or a multiple of the group"));
  }
  int stride = 1;
  const int per_node = transfer.group.ranks_per_node;
  if (transfer.scope == LinkScope::kNic && per_node >= 1 && world.ranks_per_node % per_node == 0 &&
      world.ranks % (members * (world.ranks_per_node / per_node)) == 0) {
    stride = world.ranks_per_node / per_node;
  }
  GroupPlacement placement;
  placement.world.dp = members;
  placement.world.tp = stride;
  placement.world.pp = world.ranks / members / stride;
  placement.group.name = "members";
  placement.group.over_dp = true;
  return placement;
}

}  // namespace optimus::executor
