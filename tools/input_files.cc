#include "tools/input_files.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"

namespace optimus::tools {
namespace {

// A file of the zoo where `name` is no path.
void Add(const std::string& origin, const std::string& name, const char* zoo,
         std::vector<NamedFile>& inputs) {
  if (name.empty()) return;
  const bool is_path = absl::StrContains(name, "/") || absl::EndsWith(name, ".textproto") ||
                       absl::EndsWith(name, ".json");
  inputs.push_back(
      {origin, is_path ? name : absl::StrCat(DataDir(), "/", zoo, "/zoo/", name, ".textproto")});
}

}  // namespace

std::vector<NamedFile> InputFiles(const std::string& path, const step::Experiment& experiment) {
  std::vector<NamedFile> inputs = {{"FILE", path}};
  Add("llm", experiment.llm(), "models", inputs);
  Add("hardware.profile", experiment.hardware().profile(), "hw_profiles", inputs);
  for (const step::Encoder& encoder : experiment.encoders()) {
    Add("encoder's model", encoder.model(), "models", inputs);
  }
  if (!experiment.plan().schedule_file().empty()) {
    inputs.push_back({"plan.schedule_file", experiment.plan().schedule_file()});
  }
  return inputs;
}

absl::Status NameFile(const std::string& path, const absl::Status& status) {
  if (status.ok() || absl::StrContains(status.message(), path)) return status;
  return {status.code(), absl::StrCat(path, ": ", status.message())};
}

void AddProfileFile(const std::string& flag, const std::string& name,
                    std::vector<NamedFile>& inputs) {
  Add(flag, name, "hw_profiles", inputs);
}

}  // namespace optimus::tools
