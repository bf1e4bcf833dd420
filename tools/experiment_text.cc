#include "tools/experiment_text.h"

#include <filesystem>

#include "google/protobuf/text_format.h"

namespace optimus::tools {
namespace {

// A path from the current folder becomes one from the folder of `file`, where it will be looked
// for. Names of the zoo have no extension.
void MakeBeside(const std::string& file, std::string& name_or_path) {
  const std::filesystem::path path(name_or_path);
  if (path.extension() != ".textproto" && path.extension() != ".json") return;
  const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  name_or_path = std::filesystem::proximate(std::filesystem::absolute(path), folder).string();
}

}  // namespace

std::string ExperimentText(const std::string& file, step::Experiment experiment) {
  MakeBeside(file, *experiment.mutable_llm());
  MakeBeside(file, *experiment.mutable_hardware()->mutable_profile());
  for (step::Encoder& encoder : *experiment.mutable_encoders()) {
    MakeBeside(file, *encoder.mutable_model());
  }
  if (!experiment.plan().schedule_file().empty()) {
    MakeBeside(file, *experiment.mutable_plan()->mutable_schedule_file());
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(experiment, &text);
  return text;
}

}  // namespace optimus::tools
