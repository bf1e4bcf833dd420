#pragma once
// The Pareto front: points that no other point beats or equals in everything.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/sweep/show/select.h"

namespace optimus::sweep {

// `rows` are points in their order, all with the same measures, each the lower the better. Of
// points that are equal in all measures the first one stays. Returns indices of `rows`, sorted by
// the measures, the first one first.
std::vector<std::size_t> ParetoFront(const std::vector<std::vector<double>>& rows);

struct Front {
  std::vector<Aim> aims;
  std::vector<std::vector<double>> values;  // of every point that has all measures, as `aims`
  std::vector<std::size_t> members;         // indices of `values` and of table.rows
  SqlTable table;                           // `columns` of every such point
  std::int64_t without = 0;                 // points that lack a measure
};
absl::StatusOr<Front> FindFront(const Database& database, const std::vector<Column>& columns,
                                const Filter& filter, const std::vector<Aim>& aims);

}  // namespace optimus::sweep
