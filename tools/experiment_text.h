#pragma once
// An experiment as the content of a file.

#include <string>

#include "schedule/step/experiment.pb.h"

namespace optimus::tools {

// Textproto for `file`, from which `optimus simulate FILE` simulates `experiment`: files that it
// names by paths from the current folder are named from the folder of `file`.
std::string ExperimentText(const std::string& file, step::Experiment experiment);

}  // namespace optimus::tools
