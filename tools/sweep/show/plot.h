#pragma once
// Plots of a sweep: what is drawn, as data, and the gnuplot script that draws it. The same database
// and flags give the same script, byte for byte; the data stand in it.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/sweep/show/pareto.h"
#include "tools/sweep/show/select.h"

namespace optimus::sweep {

// Pixels of every plot.
inline constexpr int kPlotWidth = 1120;
inline constexpr int kPlotHeight = 680;

// y over x, a line for each value of `series`, each point the best over all else.
struct ScalingRequest {
  Column x;
  Aim y;
  std::optional<Column> series;
};
struct ScalingPoint {
  double x = 0, y = 0;
};
struct ScalingLine {
  std::string name;  // the value of the series
  std::vector<ScalingPoint> points;
};
struct ScalingPlot {
  std::string sweep_name;
  ScalingRequest request;
  std::vector<ScalingLine> lines;  // numbers ascending; names in the order of the sweep
  Filter filter;
};
// INVALID_ARGUMENT where no point has x and y.
absl::StatusOr<ScalingPlot> MakeScalingPlot(const Database& database, const About& about,
                                            const Filter& filter, const ScalingRequest& request);
std::string ScalingScript(const ScalingPlot& plot);

// z in a cell for every x and y, the best over all else.
struct HeatMapRequest {
  Column x, y;
  Aim z;
};
struct HeatMapCell {
  std::size_t x = 0, y = 0;  // places in xs and ys
  double z = 0;
};
struct HeatMapPlot {
  std::string sweep_name;
  HeatMapRequest request;
  std::vector<std::string> xs, ys;  // numbers ascending; names in the order of the sweep
  std::vector<HeatMapCell> cells;   // by y, then x; combinations without a point have none
  std::size_t best = 0;             // of `cells`
  Filter filter;
};
// INVALID_ARGUMENT where no point has z, or where there are more values than cells that can be
// read.
absl::StatusOr<HeatMapPlot> MakeHeatMapPlot(const Database& database, const About& about,
                                            const Filter& filter, const HeatMapRequest& request);
std::string HeatMapScript(const HeatMapPlot& plot);

// All points grey, the front as a line, its points numbered, and named beside the plot.
struct ParetoMember {
  double x = 0, y = 0;
  std::string name;  // "dp 8, tp 4": the axes that differ on the front
};
struct ParetoPlot {
  std::string sweep_name;
  Aim x, y;
  std::vector<ScalingPoint> points;  // all, the front among them
  std::vector<ParetoMember> front;   // from the best x to the best y
  std::string common;                // "strategy OPTIMUS": the axes that do not
  Filter filter;
};
// INVALID_ARGUMENT where no point has x and y.
absl::StatusOr<ParetoPlot> MakeParetoPlot(const Database& database, const About& about,
                                          const Filter& filter, const Aim& x, const Aim& y);
std::string ParetoScript(const ParetoPlot& plot);

}  // namespace optimus::sweep
