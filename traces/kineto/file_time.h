#pragma once
// Times as trace files write them: microseconds, in decimal.

#include <compare>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "base/units.h"

namespace optimus::traces {

// A time of the file's clock, exact: microseconds since 1970 do not fit picoseconds in 64 bits.
struct FileTime {
  std::int64_t ns = 0;
  std::int32_t ps = 0;  // 0 to 999
  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14
  friend auto operator<=>(const FileTime&, const FileTime&) = default;
};

// "1682725898094377.123", "-1e3": a JSON number of microseconds. Six decimals are exact, what is
// behind them is rounded (half away from zero). nullopt: no number, or it does not fit.
std::optional<FileTime> ParseMicroseconds(absl::string_view text);

// nullopt: more than 2^63 picoseconds (106 days) apart.
std::optional<Picoseconds> Difference(FileTime a, FileTime b);  // a - b
std::optional<FileTime> Sum(FileTime a, Picoseconds b);

}  // namespace optimus::traces
