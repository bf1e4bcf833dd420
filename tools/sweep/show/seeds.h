#pragma once
// Means over the seeds of a sweep. What is asked about are plans; the best single point would be
// the luckiest draw of one.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/sweep/show/select.h"

namespace optimus::sweep {

// The axis whose values are draws.
inline constexpr char kSeedAxis[] = "seed";

// The metric `name` of the luckiest and the unluckiest draw: "iteration_time_s_least", ..._most.
std::string LeastName(const std::string& name);
std::string MostName(const std::string& name);

// Where `about` has the axis "seed", and points that agree in all other axes and derived values,
// such points become one row of the view `sweep`, as this connection sees it from now on:
//
//   point           the smallest number
//   status          ok where one of them ran
//   metrics         of those that ran: numbers are means, `fits` is 1 where all fit, texts stay
//                   where they are equal and are NULL else
//   NAME_least, ... for every NAME of `spread` that is a metric of numbers
//   seeds           how many ran
//
// `about` gets these columns and loses the axis. Without such points nothing changes, and the
// answer is SeedMeans{}. The file itself is not written: the view is a temporary one.
absl::StatusOr<SeedMeans> UseSeedMeans(const Database& database,
                                       const std::vector<std::string>& spread, About& about);

}  // namespace optimus::sweep
