#pragma once
// Drawing a script with gnuplot, as a child process without a shell.

#include <string>

#include "absl/status/statusor.h"

namespace optimus::sweep {

enum class PlotFormat { kSvg, kPng };

// By the end of `path`: .svg or .png. INVALID_ARGUMENT "FLAG: ..." else.
absl::StatusOr<PlotFormat> FormatOf(const std::string& flag, const std::string& path);

// The bytes of the image. FAILED_PRECONDITION where there is no gnuplot, INTERNAL with what it says
// where it stops.
absl::StatusOr<std::string> DrawPlot(const std::string& script, PlotFormat format);

}  // namespace optimus::sweep
