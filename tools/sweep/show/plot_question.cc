#include "tools/sweep/show/plot_question.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/sweep/show/plot.h"

namespace optimus::sweep {
namespace {

absl::Status Needed(const PlotQuestion& question, const std::string& flag,
                    const std::string& value) {
  if (!value.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--plot=", question.kind, ": needs ", flag, "=COLUMN"));
}

absl::Status Useless(const PlotQuestion& question, const std::string& flag,
                     const std::string& value) {
  if (value.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": --plot=", question.kind, " has no use for it"));
}

absl::StatusOr<Aim> AimOr(const About& about, const std::string& flag, const std::string& text,
                          const std::string& otherwise) {
  return ParseAim(about, flag, text.empty() ? otherwise : text, true);
}

// What comes out of a point is no scale to go along: the best of each of its values says nothing.
// A number of GPUs is of the plan, though a metric tells it.
absl::Status CheckScale(const Column& x) {
  const bool given = x.kind == ColumnKind::kAxis || x.kind == ColumnKind::kDerived;
  if (given || x.name == "world_gpus") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--x: column \"", x.name,
                   "\" is a result, and --plot=scaling goes along an axis or derived value; "
                   "--plot=pareto draws two metrics against each other"));
}

absl::StatusOr<std::string> Scaling(const Database& database, const About& about,
                                    const Filter& filter, const PlotQuestion& question) {
  OPTIMUS_RETURN_IF_ERROR(Needed(question, "--x", question.x));
  OPTIMUS_RETURN_IF_ERROR(Useless(question, "--z", question.z));
  ScalingRequest request;
  OPTIMUS_ASSIGN_OR_RETURN(request.x, FindNumber(about, "--x", question.x));
  OPTIMUS_RETURN_IF_ERROR(CheckScale(request.x));
  OPTIMUS_ASSIGN_OR_RETURN(request.y, AimOr(about, "--y", question.y, about.objective));
  if (!question.series.empty()) {
    OPTIMUS_ASSIGN_OR_RETURN(request.series, FindColumn(about, "--series", question.series));
  }
  OPTIMUS_ASSIGN_OR_RETURN(const ScalingPlot plot,
                           MakeScalingPlot(database, about, filter, request));
  return ScalingScript(plot);
}

absl::StatusOr<std::string> HeatMap(const Database& database, const About& about,
                                    const Filter& filter, const PlotQuestion& question) {
  OPTIMUS_RETURN_IF_ERROR(Needed(question, "--x", question.x));
  OPTIMUS_RETURN_IF_ERROR(Needed(question, "--y", question.y));
  OPTIMUS_RETURN_IF_ERROR(Useless(question, "--series", question.series));
  HeatMapRequest request;
  OPTIMUS_ASSIGN_OR_RETURN(request.x, FindColumn(about, "--x", question.x));
  OPTIMUS_ASSIGN_OR_RETURN(request.y, FindColumn(about, "--y", question.y));
  OPTIMUS_ASSIGN_OR_RETURN(request.z, AimOr(about, "--z", question.z, about.objective));
  OPTIMUS_ASSIGN_OR_RETURN(const HeatMapPlot plot,
                           MakeHeatMapPlot(database, about, filter, request));
  return HeatMapScript(plot);
}

absl::StatusOr<std::string> Pareto(const Database& database, const About& about,
                                   const Filter& filter, const PlotQuestion& question) {
  OPTIMUS_RETURN_IF_ERROR(Useless(question, "--z", question.z));
  OPTIMUS_RETURN_IF_ERROR(Useless(question, "--series", question.series));
  OPTIMUS_ASSIGN_OR_RETURN(const Aim x, AimOr(about, "--x", question.x, about.objective));
  OPTIMUS_ASSIGN_OR_RETURN(const Aim y, AimOr(about, "--y", question.y, "memory_gib"));
  OPTIMUS_ASSIGN_OR_RETURN(const ParetoPlot plot, MakeParetoPlot(database, about, filter, x, y));
  return ParetoScript(plot);
}

}  // namespace

absl::StatusOr<std::string> PlotScript(const Database& database, const About& about,
                                       const Filter& filter, const PlotQuestion& question) {
  OPTIMUS_RETURN_IF_ERROR(CheckWhere(database, about, filter));
  if (question.kind == "scaling") return Scaling(database, about, filter, question);
  if (question.kind == "heat-map") return HeatMap(database, about, filter, question);
  if (question.kind == "pareto") return Pareto(database, about, filter, question);
  return absl::InvalidArgumentError(
      absl::StrCat("--plot: \"", question.kind, "\" is none of ", kPlotKinds));
}

}  // namespace optimus::sweep
