#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/remembered_text_proto.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "hw_profiles/profile.h"

namespace optimus::hw {
namespace {

constexpr char kSuffix[] = ".textproto";

std::string ZooDir() { return absl::StrCat(DataDir(), "/hw_profiles/zoo"); }

bool LooksLikePath(const std::string& text) {
  return absl::StrContains(text, "/") || absl::EndsWith(text, kSuffix);
}

}  // namespace

std::string ToTextProto(const HardwareProfile& profile) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(profile, &text);
  return text;
}

std::vector<std::string> ZooProfiles() {
  std::vector<std::string> names;
  std::error_code error;  // no zoo: no names, and LoadProfile says so
  for (const auto& entry : std::filesystem::directory_iterator(ZooDir(), error)) {
    if (entry.path().extension() == kSuffix) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<HardwareProfile> LoadProfile(const std::string& name_or_path) {
  std::string path = name_or_path;
  if (!LooksLikePath(name_or_path)) {
    const std::vector<std::string> known = ZooProfiles();
    if (std::find(known.begin(), known.end(), name_or_path) == known.end()) {
      return absl::NotFoundError(absl::StrCat("unknown hardware profile '", name_or_path, "'; ",
                                              KnownNames(known, ZooDir()), "; a path to a ",
                                              kSuffix, " file works too"));
    }
    path = absl::StrCat(ZooDir(), "/", name_or_path, kSuffix);
  }
  return ReadRemembered<HardwareProfile>(path, &ValidateProfile);
}

}  // namespace optimus::hw
