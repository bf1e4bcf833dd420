// The dynamic programme of the balanced partition: at most O(layers^2 * stages), a few milliseconds
// for 200 layers on 200 virtual stages; nothing cleverer is needed.

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "schedule/partition/partition.h"

namespace optimus::partition {
namespace {

struct Cell {
  std::int64_t largest = 0;  // F(l, m)
  int last_boundary = 0;     // earliest j that attains it
};

// F(layers, stages) from the column of stages - 1. `prefix[l]` is the time of the first l layers.
// Needs layers >= stages >= 2.
Cell BestSplit(const std::vector<Cell>& fewer_stages, const std::vector<std::int64_t>& prefix,
               int layers, int stages) {
  Cell best;
  for (int j = stages - 1; j < layers; ++j) {
    // F never falls as layers are added, so from here on no j is strictly better.
    if (j > stages - 1 && fewer_stages[j].largest >= best.largest) {
      break;
    }
    const std::int64_t largest = std::max(fewer_stages[j].largest, prefix[layers] - prefix[j]);
    // Strictly smaller: on a tie the earlier boundary stays.
    if (j == stages - 1 || largest < best.largest) {
      best = Cell{largest, j};
    }
  }
  return best;
}

// table[m][l]: F(l, m) for m stages over the first l layers; only l >= m is filled.
std::vector<std::vector<Cell>> FillTable(const std::vector<std::int64_t>& prefix, int stages) {
  const int layers = static_cast<int>(prefix.size()) - 1;
  std::vector<std::vector<Cell>> table(stages + 1, std::vector<Cell>(layers + 1));
  for (int l = 1; l <= layers; ++l) {
    table[1][l] = Cell{prefix[l], 0};
  }
  for (int m = 2; m <= stages; ++m) {
    for (int l = m; l <= layers; ++l) {
      table[m][l] = BestSplit(table[m - 1], prefix, l, m);
    }
  }
  return table;
}

absl::Status CheckBalanced(const std::vector<Picoseconds>& layer_times, int virtual_stages) {
  if (virtual_stages < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("virtual stages: ", virtual_stages, " is not a positive number"));
  }
  if (layer_times.size() < static_cast<std::size_t>(virtual_stages)) {
    return absl::InvalidArgumentError(
        absl::StrCat("layers: ", layer_times.size(), ", fewer than the ", virtual_stages,
                     " virtual stages, every stage needs one; use fewer stages, or a schedule with "
                     "fewer model chunks"));
  }
  for (std::size_t i = 0; i < layer_times.size(); ++i) {
    if (layer_times[i] < Picoseconds(0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer ", i, ": negative time ", layer_times[i].value(), " ps"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Boundaries> Balanced(const std::vector<Picoseconds>& layer_times,
                                    int virtual_stages) {
  if (absl::Status status = CheckBalanced(layer_times, virtual_stages); !status.ok()) {
    return status;
  }
  std::vector<std::int64_t> prefix{0};
  for (const Picoseconds time : layer_times) {
    prefix.push_back(prefix.back() + time.value());
  }
  const auto table = FillTable(prefix, virtual_stages);
  Boundaries boundaries(virtual_stages + 1);
  boundaries[virtual_stages] = static_cast<int>(layer_times.size());
  for (int m = virtual_stages; m >= 1; --m) {
    boundaries[m - 1] = table[m][boundaries[m]].last_boundary;
  }
  return boundaries;
}

}  // namespace optimus::partition
