#pragma once
// Models by name (models/zoo/NAME.textproto), by path to a textproto, or from a Hugging Face
// config.json.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.pb.h"

namespace optimus::models {

// `name_or_path`: a zoo name ("vit-22b"), a *.textproto path, or a *.json path (Hugging Face).
// NOT_FOUND for an unknown name lists the known ones.
absl::StatusOr<ModelConfig> LoadModel(const std::string& name_or_path);
std::vector<std::string> ZooModels();
absl::StatusOr<ModelConfig> ImportHuggingFaceConfig(const std::string& path);

}  // namespace optimus::models
