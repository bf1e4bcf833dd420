#pragma once
// Quantities as people write them on a command line: "3us", "400GB/s" (decimal), "80GiB" (binary).

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/units.h"

namespace optimus {

// A number (digits, optional fraction and exponent), optional blanks, a unit; units are
// case-sensitive and never left out. Errors: INVALID_ARGUMENT with the text and the units that
// would do. Negative and non-finite values are errors, and so is what does not fit the type.

// ps, ns, us, ms, s, min, h. Rounded to a picosecond.
absl::StatusOr<Picoseconds> ParseDuration(absl::string_view text);

// B, kB, MB, GB, TB, PB (powers of 1000), KiB, MiB, GiB, TiB, PiB (of 1024). Rounded to a byte.
absl::StatusOr<Bytes> ParseBytes(absl::string_view text);

// A ParseBytes unit followed by "/s", or kb/s, Mb/s, Gb/s, Tb/s (bits, powers of 1000). Not 0.
absl::StatusOr<BytesPerSecond> ParseBandwidth(absl::string_view text);

// GFLOP/s, TFLOP/s, PFLOP/s, EFLOP/s. Not 0.
absl::StatusOr<FlopsPerSecond> ParseFlopsPerSecond(absl::string_view text);

}  // namespace optimus
