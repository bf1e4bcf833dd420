#pragma once
// The files that a run reads: for CheckOverwrites, since no output may replace one, and in
// messages.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "schedule/step/experiment.pb.h"
#include "tools/outputs.h"

namespace optimus::tools {

// FILE, and what the experiment names: its profile and models (files, or of the zoo). Of a schedule
// file `experiment` is empty.
std::vector<NamedFile> InputFiles(const std::string& path, const step::Experiment& experiment);

// Puts the file before a message that does not name it yet.
absl::Status NameFile(const std::string& path, const absl::Status& status);

// `name`: of --profile or --base; a path, or a profile of the zoo; may be empty.
void AddProfileFile(const std::string& flag, const std::string& name,
                    std::vector<NamedFile>& inputs);

}  // namespace optimus::tools
