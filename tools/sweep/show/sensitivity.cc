#include "tools/sweep/show/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::sweep {
namespace {

// Points of one value in one company, or anywhere.
struct Sum {
  std::int64_t points = 0;
  double logs = 0;
  double best = 0;
  void Add(double objective, bool high_is_better) {
    const bool better = high_is_better ? objective > best : objective < best;
    if (points == 0 || better) best = objective;
    ++points;
    logs += std::log(objective);
  }
};

// One text for values that are equal, and for no others.
std::string Key(const SqlValue& value) {
  const std::string text = ToText(value);
  return absl::StrCat(value.index(), ":", text.size(), ":", text);
}

bool IsNumber(const SqlValue& value) { return ToNumber(value).has_value(); }

// Numbers ascending, all else as it comes.
std::vector<SqlValue> ValuesOf(std::size_t axis, const std::vector<Observation>& observations) {
  std::vector<SqlValue> values;
  std::set<std::string> seen;
  for (const Observation& one : observations) {
    if (seen.insert(Key(one.axes[axis])).second) values.push_back(one.axes[axis]);
  }
  if (std::all_of(values.begin(), values.end(), IsNumber)) {
    std::stable_sort(values.begin(), values.end(), [](const SqlValue& a, const SqlValue& b) {
      return *ToNumber(a) < *ToNumber(b);
    });
  }
  return values;
}

// Whether each value of one axis goes with one value of the other, both ways.
bool AreZipped(std::size_t a, std::size_t b, const std::vector<Observation>& observations) {
  std::set<std::string> left, right;
  std::set<std::pair<std::string, std::string>> both;
  for (const Observation& one : observations) {
    left.insert(Key(one.axes[a]));
    right.insert(Key(one.axes[b]));
    both.emplace(Key(one.axes[a]), Key(one.axes[b]));
  }
  return left.size() > 1 && left.size() == both.size() && right.size() == both.size();
}

// By company (the values of all axes but `changing`), then by value of `axis`.
using Companies = std::map<std::string, std::map<std::string, Sum>>;

Companies Sort(std::size_t axis, const std::set<std::size_t>& changing,
               const std::vector<Observation>& observations) {
  Companies companies;
  for (const Observation& one : observations) {
    std::string company;
    for (std::size_t i = 0; i < one.axes.size(); ++i) {
      if (!changing.contains(i)) absl::StrAppend(&company, Key(one.axes[i]), ",");
    }
    companies[company][Key(one.axes[axis])].Add(one.objective, false);
  }
  return companies;
}

// The first of `values` that meets another in some company.
std::optional<SqlValue> Reference(const std::vector<SqlValue>& values, const Companies& companies) {
  for (const SqlValue& value : values) {
    const std::string key = Key(value);
    for (const auto& company : companies) {
      if (company.second.size() > 1 && company.second.contains(key)) return value;
    }
  }
  return std::nullopt;
}

// Of n points of `value` and m of the reference in one company there are n * m pairs.
void Match(const SqlValue& reference, const Companies& companies, AxisValue& value) {
  const std::string ours = Key(value.value), theirs = Key(reference);
  if (ours == theirs) {
    value.ratio = 1;
    return;
  }
  double logs = 0;
  for (const auto& company : companies) {
    const auto a = company.second.find(ours), b = company.second.find(theirs);
    if (a == company.second.end() || b == company.second.end()) continue;
    const Sum &one = a->second, &other = b->second;
    value.pairs += one.points * other.points;
    logs +=
        static_cast<double>(other.points) * one.logs - static_cast<double>(one.points) * other.logs;
  }
  if (value.pairs > 0) value.ratio = std::exp(logs / static_cast<double>(value.pairs));
}

std::optional<double> Spread(const std::vector<AxisValue>& values) {
  std::optional<double> least, most;
  for (const AxisValue& value : values) {
    if (!value.ratio) continue;
    least = least ? std::min(*least, *value.ratio) : *value.ratio;
    most = most ? std::max(*most, *value.ratio) : *value.ratio;
  }
  if (!least) return std::nullopt;
  return *most / *least;
}

AxisEffect EffectOf(std::size_t axis, const std::vector<Column>& axes,
                    const std::vector<Observation>& observations, bool high_is_better) {
  AxisEffect effect;
  effect.axis = axes[axis];
  std::set<std::size_t> changing = {axis};
  for (std::size_t other = 0; other < axes.size(); ++other) {
    if (other == axis || !AreZipped(axis, other, observations)) continue;
    changing.insert(other);
    effect.zipped.push_back(axes[other].name);
  }
  std::map<std::string, Sum> sums;
  for (const Observation& one : observations) {
    sums[Key(one.axes[axis])].Add(one.objective, high_is_better);
  }
  const std::vector<SqlValue> values = ValuesOf(axis, observations);
  const Companies companies = Sort(axis, changing, observations);
  effect.reference = Reference(values, companies);
  effect.values.reserve(values.size());
  for (const SqlValue& value : values) {
    const Sum& sum = sums[Key(value)];
    AxisValue& row = effect.values.emplace_back();
    row.value = value;
    row.points = sum.points;
    row.best = sum.best;
    row.geometric_mean = std::exp(sum.logs / static_cast<double>(sum.points));
    if (effect.reference) Match(*effect.reference, companies, row);
  }
  effect.spread = Spread(effect.values);
  return effect;
}

}  // namespace

std::vector<AxisEffect> AxisEffects(const std::vector<Column>& axes,
                                    const std::vector<Observation>& observations,
                                    bool high_is_better) {
  std::vector<AxisEffect> effects;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    if (ValuesOf(axis, observations).size() < 2) continue;
    effects.push_back(EffectOf(axis, axes, observations, high_is_better));
  }
  std::stable_sort(effects.begin(), effects.end(), [](const AxisEffect& a, const AxisEffect& b) {
    return a.spread.value_or(0) > b.spread.value_or(0);
  });
  return effects;
}

absl::StatusOr<Sensitivity> FindSensitivity(const Database& database, const About& about,
                                            const Filter& filter, const Aim& objective) {
  const std::vector<Column> axes = ColumnsOfKind(about, {ColumnKind::kAxis});
  std::vector<Column> asked = axes;
  asked.push_back(objective.column);
  OPTIMUS_ASSIGN_OR_RETURN(SqlTable table, database.Query(absl::StrCat(
                                               "SELECT ", SqlNames(asked), " FROM ", Source(filter),
                                               " WHERE ", OkCondition(filter), " ORDER BY point")));
  Sensitivity sensitivity;
  sensitivity.objective = objective;
  std::vector<Observation> observations;
  observations.reserve(table.rows.size());
  for (std::vector<SqlValue>& row : table.rows) {
    const std::optional<double> value = ToNumber(row.back());
    if (!value || !(*value > 0)) {
      ++sensitivity.left_out;
      continue;
    }
    row.pop_back();
    observations.push_back({std::move(row), *value});
  }
  sensitivity.points = std::ssize(observations);
  sensitivity.axes = AxisEffects(axes, observations, objective.high);
  return sensitivity;
}

}  // namespace optimus::sweep
