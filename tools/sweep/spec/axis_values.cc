#include "tools/sweep/spec/axis_values.h"

#include <cmath>
#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/sweep/store/sqlite.h"

namespace optimus::sweep {
namespace {

constexpr double kMostValues = 1e6;
constexpr double kLargestWhole = 9007199254740992.0;  // 2^53
// A last value that misses `to` by rounding alone belongs to the range.
constexpr double kSlack = 1e-9;

absl::Status Error(const FieldPath& field, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(field.text(), ": ", what));
}

std::string NumberText(double value) {
  if (value == std::floor(value) && std::fabs(value) <= kLargestWhole) {
    return absl::StrCat(static_cast<std::int64_t>(value));
  }
  return ToText(value);
}

absl::StatusOr<std::vector<double>> RangeValues(const Range& range, const FieldPath& field) {
  const bool finite =
      std::isfinite(range.from()) && std::isfinite(range.to()) && std::isfinite(range.step());
  if (!finite || !(range.step() > 0) || range.from() > range.to()) {
    return Error(field, "a range needs from <= to and step > 0");
  }
  const double count = std::floor((range.to() - range.from()) / range.step() * (1 + kSlack)) + 1;
  if (!(count <= kMostValues)) return Error(field, "the range has over 1,000,000 values");
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(count));
  // From the start each time: no rounding adds up.
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
    values.push_back(range.from() + static_cast<double>(i) * range.step());
  }
  return values;
}

absl::StatusOr<std::vector<double>> LogRangeValues(const LogRange& range, const FieldPath& field) {
  const bool ends = std::isfinite(range.from()) && std::isfinite(range.to()) && range.from() > 0 &&
                    range.from() <= range.to();
  if (!ends) return Error(field, "a log_range needs 0 < from <= to");
  const bool by_factor = range.factor() != 0;
  if (by_factor == (range.points() != 0)) {
    return Error(field, "a log_range needs either a factor or how many points");
  }
  if (by_factor ? !(range.factor() > 1 && std::isfinite(range.factor())) : range.points() < 2) {
    return Error(field, "a log_range needs a factor above 1, or at least 2 points");
  }
  const double ratio = std::log(range.to()) - std::log(range.from());  // the quotient may overflow
  const double step = by_factor ? std::log(range.factor()) : ratio / (range.points() - 1);
  const double count =
      by_factor ? std::floor(ratio / step * (1 + kSlack)) + 1 : static_cast<double>(range.points());
  if (!(count <= kMostValues)) return Error(field, "the log_range has over 1,000,000 values");
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
    const auto at = static_cast<double>(i);
    double value = by_factor ? range.from() * std::pow(range.factor(), at)
                             : range.from() * std::exp(step * at);
    if (!by_factor && i + 1 == static_cast<std::int64_t>(count)) value = range.to();
    values.push_back(field.is_integer() ? std::round(value) : value);
  }
  return values;
}

absl::StatusOr<std::vector<std::string>> Given(const Axis& axis, const FieldPath& field) {
  const int ways = static_cast<int>(axis.values_size() > 0) +
                   static_cast<int>(axis.numbers_size() > 0) + static_cast<int>(axis.has_range()) +
                   static_cast<int>(axis.has_log_range());
  if (ways != 1) {
    return Error(field, "an axis needs exactly one of values, numbers, range and log_range");
  }
  if (axis.values_size() > 0) {
    return std::vector<std::string>(axis.values().begin(), axis.values().end());
  }
  std::vector<double> numbers(axis.numbers().begin(), axis.numbers().end());
  if (axis.has_range()) {
    OPTIMUS_ASSIGN_OR_RETURN(numbers, RangeValues(axis.range(), field));
  } else if (axis.has_log_range()) {
    OPTIMUS_ASSIGN_OR_RETURN(numbers, LogRangeValues(axis.log_range(), field));
  }
  std::vector<std::string> values;
  values.reserve(numbers.size());
  for (const double number : numbers) values.push_back(NumberText(number));
  return values;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> AxisValues(const Axis& axis, const FieldPath& field,
                                                    bool repeats) {
  OPTIMUS_ASSIGN_OR_RETURN(std::vector<std::string> values, Given(axis, field));
  std::set<std::string> seen;
  for (const std::string& value : values) {
    OPTIMUS_RETURN_IF_ERROR(field.CheckValue(value));
    if (!seen.insert(value).second && !repeats) {
      return Error(field,
                   absl::StrCat("the axis has ", value, " twice",
                                axis.has_log_range() ? "; fewer points of whole numbers" : ""));
    }
  }
  return values;
}

}  // namespace optimus::sweep
