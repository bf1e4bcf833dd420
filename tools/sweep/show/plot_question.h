#pragma once
// The flags of a plot, and its script.

#include <string>

#include "absl/status/statusor.h"
#include "tools/sweep/show/select.h"

namespace optimus::sweep {

inline constexpr char kPlotKinds[] = "scaling|heat-map|pareto";

// Names of columns; measures with + or - as Aim. Empty: left out.
struct PlotQuestion {
  std::string kind;  // one of kPlotKinds
  std::string x, y, z, series;
};

// What is left out is the objective (y of scaling, z of heat-map, x of pareto) or memory_gib (y of
// pareto). INVALID_ARGUMENT, naming the flag, where one that is needed is missing, or one is given
// that the kind has no use for; and where there is nothing to draw.
absl::StatusOr<std::string> PlotScript(const Database& database, const About& about,
                                       const Filter& filter, const PlotQuestion& question);

}  // namespace optimus::sweep
