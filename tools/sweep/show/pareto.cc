#include "tools/sweep/show/pareto.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::sweep {
namespace {

bool NoWorse(const std::vector<double>& a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
  }
  return true;
}

// Absent where one of the measures is NULL.
std::optional<std::vector<double>> Measures(const std::vector<SqlValue>& row, std::size_t first,
                                            std::size_t count) {
  std::vector<double> values;
  values.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<double> value = ToNumber(row[first + i]);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

std::vector<std::vector<double>> LowerIsBetter(const Front& front) {
  std::vector<std::vector<double>> values = front.values;
  for (std::vector<double>& row : values) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (front.aims[i].high) row[i] = -row[i];
    }
  }
  return values;
}

}  // namespace

// In lexicographic order nothing is beaten by what comes later, and whatever beats a point has a
// member of the front before it that does too.
std::vector<std::size_t> ParetoFront(const std::vector<std::vector<double>>& rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rows[a] < rows[b]; });
  std::vector<std::size_t> front;
  for (const std::size_t candidate : order) {
    const bool beaten = std::any_of(front.begin(), front.end(), [&](std::size_t member) {
      return NoWorse(rows[member], rows[candidate]);
    });
    if (!beaten) front.push_back(candidate);
  }
  return front;
}

absl::StatusOr<Front> FindFront(const Database& database, const std::vector<Column>& columns,
                                const Filter& filter, const std::vector<Aim>& aims) {
  std::vector<Column> asked = columns;
  for (const Aim& aim : aims) asked.push_back(aim.column);
  OPTIMUS_ASSIGN_OR_RETURN(SqlTable all, database.Query(absl::StrCat(
                                             "SELECT ", SqlNames(asked), " FROM ", Source(filter),
                                             " WHERE ", OkCondition(filter), " ORDER BY point")));
  Front front;
  front.aims = aims;
  front.table.columns = Names(columns);
  for (std::vector<SqlValue>& row : all.rows) {
    std::optional<std::vector<double>> values = Measures(row, columns.size(), aims.size());
    if (!values) {
      ++front.without;
      continue;
    }
    front.values.push_back(std::move(*values));
    row.resize(columns.size());
    front.table.rows.push_back(std::move(row));
  }
  front.members = ParetoFront(LowerIsBetter(front));
  return front;
}

}  // namespace optimus::sweep
