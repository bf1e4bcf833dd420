// Partitions by counts of layers.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "schedule/partition/partition.h"

namespace optimus::partition {

absl::StatusOr<Boundaries> EqualLayers(int layers, int virtual_stages, bool allow_uneven) {
  if (virtual_stages < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("virtual stages: ", virtual_stages, " is not a positive number"));
  }
  if (layers < virtual_stages) {
    return absl::InvalidArgumentError(
        absl::StrCat("layers: ", layers, ", fewer than the ", virtual_stages,
                     " virtual stages, every stage needs one; use fewer stages, or a schedule with "
                     "fewer model chunks"));
  }
  const int each = layers / virtual_stages, more = layers % virtual_stages;
  if (more != 0 && !allow_uneven) {
    return absl::InvalidArgumentError(absl::StrCat(
        "layers: ", layers, " layers do not divide over ", virtual_stages, " virtual stages (",
        more, " would be left over); set allow_uneven, give layer_counts or a layout_string, or ",
        "choose another number of model chunks"));
  }
  Boundaries boundaries{0};
  for (int i = 0; i < virtual_stages; ++i) {
    boundaries.push_back(boundaries.back() + each + (i < more ? 1 : 0));
  }
  return boundaries;
}

absl::StatusOr<Boundaries> FromCounts(const std::vector<int>& counts, int layers) {
  if (counts.empty()) {
    return absl::InvalidArgumentError("layer_counts: empty; give one count per virtual stage");
  }
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 1) {
      return absl::InvalidArgumentError(absl::StrCat("layer_counts[", i, "]: ", counts[i],
                                                     " layers; every virtual stage needs one"));
    }
    sum += counts[i];
  }
  if (sum != layers) {
    return absl::InvalidArgumentError(absl::StrCat("layer_counts: the ", counts.size(),
                                                   " counts sum to ", sum, ", the model has ",
                                                   layers, " layers"));
  }
  Boundaries boundaries{0};
  for (const int count : counts) {
    boundaries.push_back(boundaries.back() + count);
  }
  return boundaries;
}

}  // namespace optimus::partition
