#include "models/zoo.h"

#include <algorithm>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/remembered_text_proto.h"
#include "base/status_macros.h"
#include "models/accounting.h"

namespace optimus::models {
namespace {

constexpr char kExtension[] = ".textproto";

std::string ZooDir() { return DataDir() + "/models/zoo"; }

absl::Status CheckModel(const ModelConfig& model) {
  if (model.name().empty()) {
    return absl::InvalidArgumentError("name is empty; give the model a name");
  }
  return ValidateModel(model, /*tensor_parallel=*/1);
}

absl::StatusOr<ModelConfig> ReadModel(const std::string& path) {
  return ReadRemembered<ModelConfig>(path, &CheckModel);
}

}  // namespace

std::vector<std::string> ZooModels() {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(ZooDir(), error);
  const std::filesystem::directory_iterator end;
  for (; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == kExtension) names.push_back(entry->path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<ModelConfig> LoadModel(const std::string& name_or_path) {
  if (absl::EndsWith(name_or_path, ".json")) return ImportHuggingFaceConfig(name_or_path);
  if (absl::EndsWith(name_or_path, kExtension)) return ReadModel(name_or_path);
  const std::vector<std::string> known = ZooModels();
  if (std::find(known.begin(), known.end(), name_or_path) == known.end()) {
    return absl::NotFoundError(absl::StrCat("unknown model '", name_or_path, "'; ",
                                            KnownNames(known, ZooDir()),
                                            "; or a path to a *.textproto or config.json"));
  }
  return ReadModel(absl::StrCat(ZooDir(), "/", name_or_path, kExtension));
}

}  // namespace optimus::models
