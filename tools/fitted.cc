#include "tools/fitted.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace optimus::tools {
namespace {

bool IsPartOfNumber(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.';
}

bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }

// "0.167 s" is in "0.167 s for", but not in "10.167 s" or "0.167 sheets".
bool Quotes(const std::string& source, const std::string& figure) {
  for (std::size_t at = source.find(figure); at != std::string::npos;
       at = source.find(figure, at + 1)) {
    const std::size_t end = at + figure.size();
    const bool begins = at == 0 || !IsPartOfNumber(source[at - 1]);
    const bool ends = end == source.size() || !IsLetter(source[end]);
    if (begins && ends) return true;
  }
  return false;
}

void Visit(const google::protobuf::Message& message, const std::string& path,
           const std::string& figure, std::vector<std::string>& found) {
  if (message.GetDescriptor() == hw::Number::descriptor()) {
    const auto& number = static_cast<const hw::Number&>(message);
    if (number.origin() == hw::Number::FITTED && Quotes(number.source(), figure)) {
      found.push_back(path);
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
          absl::StrCat(path, path.empty() ? "" : ".", field->name()), figure, found);
  }
}

}  // namespace

std::vector<std::string> FittedConstants(const hw::HardwareProfile& profile,
                                         const std::string& value, const std::string& unit) {
  std::vector<std::string> found;
  if (!value.empty() && !unit.empty()) Visit(profile, "", absl::StrCat(value, " ", unit), found);
  return found;
}

}  // namespace optimus::tools
