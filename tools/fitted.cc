#include "tools/fitted.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace optimus::tools {
namespace {

struct Constants {
  std::vector<std::string> all, fitted;  // in the order of the profile
};

void Visit(const google::protobuf::Message& message, const std::string& path, Constants& found) {
  if (message.GetDescriptor() == hw::Number::descriptor()) {
    found.all.push_back(path);
    if (static_cast<const hw::Number&>(message).origin() == hw::Number::FITTED) {
      found.fitted.push_back(path);
    }
    return;
  }
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (field->is_repeated() || field->message_type() == nullptr ||
        !reflection.HasField(message, field)) {
      continue;
    }
    Visit(reflection.GetMessage(message, field),
          absl::StrCat(path, path.empty() ? "" : ".", field->name()), found);
  }
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

absl::Status CheckFitted(const hw::HardwareProfile& profile, const std::string& constant) {
  Constants constants;
  Visit(profile, "", constants);
  if (Contains(constants.fitted, constant)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("fitted \"", constant, "\" is ",
                   Contains(constants.all, constant) ? "not fitted in" : "no constant of",
                   " profile ", profile.name(), "; fitted are ",
                   constants.fitted.empty() ? "none" : absl::StrJoin(constants.fitted, ", ")));
}

}  // namespace optimus::tools
