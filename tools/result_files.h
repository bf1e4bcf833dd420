#pragma once
// The files of --out, --trace, --schedule and --timeline: which ones, and writing all of them or
// none.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/outputs.h"
#include "tools/report.h"
#include "tools/simulate_command.h"
#include "tools/simulation.h"

namespace optimus::tools {

// The flags that name one file each, with the file; those that were not given are left out.
std::vector<NamedFile> NamedOutputs(const SimulateFlags& flags);

// Before any simulation: refuses names that collide or are too long, folders in the way, and files
// that are also read or written twice.
absl::Status CheckResultFiles(const SimulateFlags& flags,
                              const std::vector<Simulation>& simulations);

// `reports` are those of `simulations`, which have run. After an error no file is there that was
// not there before, and none has changed.
absl::Status WriteResultFiles(const SimulateFlags& flags,
                              const std::vector<Simulation>& simulations,
                              const std::vector<Report>& reports, Progress& progress);

// "wrote a.pftrace, a.schedule.pb"; empty where nothing was to be written.
std::string WrittenText(const SimulateFlags& flags);

}  // namespace optimus::tools
