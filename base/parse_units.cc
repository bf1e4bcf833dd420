#include "base/parse_units.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace optimus {
namespace {

struct Unit {
  absl::string_view name;
  double scale = 0;  // to the strong type's own unit
};

constexpr double kKib = 1024.0;

constexpr Unit kDurations[] = {{"ps", 1},   {"ns", 1e3},   {"us", 1e6},  {"ms", 1e9},
                               {"s", 1e12}, {"min", 6e13}, {"h", 3.6e15}};

constexpr Unit kSizes[] = {{"B", 1},
                           {"kB", 1e3},
                           {"MB", 1e6},
                           {"GB", 1e9},
                           {"TB", 1e12},
                           {"PB", 1e15},
                           {"KiB", kKib},
                           {"MiB", kKib* kKib},
                           {"GiB", kKib* kKib* kKib},
                           {"TiB", kKib* kKib* kKib* kKib},
                           {"PiB", kKib* kKib* kKib* kKib* kKib}};

constexpr Unit kRates[] = {{"B/s", 1},
                           {"kB/s", 1e3},
                           {"MB/s", 1e6},
                           {"GB/s", 1e9},
                           {"TB/s", 1e12},
                           {"PB/s", 1e15},
                           {"KiB/s", kKib},
                           {"MiB/s", kKib* kKib},
                           {"GiB/s", kKib* kKib* kKib},
                           {"TiB/s", kKib* kKib* kKib* kKib},
                           {"PiB/s", kKib* kKib* kKib* kKib* kKib},
                           {"kb/s", 1e3 / 8},
                           {"Mb/s", 1e6 / 8},
                           {"Gb/s", 1e9 / 8},
                           {"Tb/s", 1e12 / 8}};

constexpr Unit kFlopRates[] = {
    {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {"EFLOP/s", 1e18}};

std::string Names(absl::Span<const Unit> units) {
  return absl::StrJoin(units, ", ",
                       [](std::string* out, const Unit& unit) { absl::StrAppend(out, unit.name); });
}

absl::Status Bad(absl::string_view text, absl::string_view what, absl::Span<const Unit> units) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "': ", what, " (a number and a unit: ", Names(units), ")"));
}

absl::StatusOr<double> ParseQuantity(absl::string_view text, absl::Span<const Unit> units) {
  const absl::string_view trimmed = absl::StripAsciiWhitespace(text);
  const char* const end = trimmed.data() + trimmed.size();
  double number = 0;
  const auto [rest, error] = absl::from_chars(trimmed.data(), end, number);
  // from_chars also reads "inf", "nan" and a sign.
  if (error == std::errc::result_out_of_range || !std::isfinite(number)) {
    return Bad(text, "the number is out of range", units);
  }
  if (error != std::errc()) return Bad(text, "does not start with a number", units);
  if (std::signbit(number)) return Bad(text, "must not be negative", units);
  const absl::string_view name =
      absl::StripLeadingAsciiWhitespace(absl::string_view(rest, static_cast<size_t>(end - rest)));
  if (name.empty()) return Bad(text, "has no unit", units);
  for (const Unit& unit : units) {
    if (unit.name == name) return number * unit.scale;
  }
  return Bad(text, absl::StrCat("unknown unit '", name, "'"), units);
}

// For the int64 quantities.
absl::StatusOr<std::int64_t> ParseWhole(absl::string_view text, absl::Span<const Unit> units) {
  OPTIMUS_ASSIGN_OR_RETURN(const double value, ParseQuantity(text, units));
  // 2^63 is a double; everything below it rounds to an int64.
  if (value >= static_cast<double>(std::numeric_limits<std::int64_t>::max())) {
    return Bad(text, "is too large", units);
  }
  return std::llround(value);
}

absl::StatusOr<double> ParsePositive(absl::string_view text, absl::Span<const Unit> units) {
  OPTIMUS_ASSIGN_OR_RETURN(const double value, ParseQuantity(text, units));
  if (!std::isfinite(value)) return Bad(text, "is too large", units);
  if (value == 0) return Bad(text, "must not be zero", units);
  return value;
}

}  // namespace

absl::StatusOr<Picoseconds> ParseDuration(absl::string_view text) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t value, ParseWhole(text, kDurations));
  return Picoseconds(value);
}

absl::StatusOr<Bytes> ParseBytes(absl::string_view text) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t value, ParseWhole(text, kSizes));
  return Bytes(value);
}

absl::StatusOr<BytesPerSecond> ParseBandwidth(absl::string_view text) {
  OPTIMUS_ASSIGN_OR_RETURN(const double value, ParsePositive(text, kRates));
  return BytesPerSecond(value);
}

absl::StatusOr<FlopsPerSecond> ParseFlopsPerSecond(absl::string_view text) {
  OPTIMUS_ASSIGN_OR_RETURN(const double value, ParsePositive(text, kFlopRates));
  return FlopsPerSecond(value);
}

}  // namespace optimus
