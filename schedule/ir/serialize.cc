// The files: binary with an end mark, or text.

#include "schedule/ir/serialize.h"

#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"

namespace optimus::ir {
namespace {

// Protobuf cannot tell a file that was cut between two fields from a whole one. So the last field
// has a known value: a whole file ends with these bytes (field 15 as fixed32, little endian).
constexpr std::uint32_t kEndOfFile = 0x454e4421;
constexpr std::array<char, 5> kEndBytes = {0x7d, 0x21, 0x44, 0x4e, 0x45};

bool IsText(const std::string& path) { return absl::EndsWith(path, ".textproto"); }

absl::Status In(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", std::string(status.message())));
}

template <class Message>
absl::StatusOr<std::string> Encode(const std::string& path, Message message) {
  message.set_end_of_file(kEndOfFile);
  std::string content;
  const bool ok = IsText(path) ? google::protobuf::TextFormat::PrintToString(message, &content)
                               : message.SerializeToString(&content);
  if (!ok) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": cannot be encoded; hint: a protobuf file holds at most 2 GiB"));
  }
  return content;
}

template <class Message>
absl::Status Write(const std::string& path, Message message) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::string content, Encode(path, std::move(message)));
  return WriteFileAtomically(path, content);
}

template <class Message>
absl::Status ReadBinary(const std::string& path, Message& message) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  if (!absl::EndsWith(content, absl::string_view(kEndBytes.data(), kEndBytes.size()))) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": cut short, or something follows its end; hint: copy or write it again"));
  }
  if (!message.ParseFromString(content)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is no ", std::string(message.GetTypeName()),
                     "; hint: the text format is read from a file whose name ends in .textproto"));
  }
  if (message.GetReflection()->GetUnknownFields(message).field_count() > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has fields unknown to ", std::string(message.GetTypeName()),
                     "; hint: it is another kind of file, or from another version"));
  }
  return absl::OkStatus();
}

template <class Value, class Message>
absl::StatusOr<Value> Read(const std::string& path) {
  Message message;
  OPTIMUS_RETURN_IF_ERROR(IsText(path) ? ReadTextProto(path, message) : ReadBinary(path, message));
  absl::StatusOr<Value> value = FromProto(message);
  if (!value.ok()) return In(path, value.status());
  return value;
}

}  // namespace

absl::Status WriteSchedule(const std::string& path, const Schedule& schedule) {
  return Write(path, ToProto(schedule));
}

absl::StatusOr<std::string> EncodeSchedule(const std::string& path, const Schedule& schedule) {
  return Encode(path, ToProto(schedule));
}

absl::StatusOr<Schedule> ReadSchedule(const std::string& path) {
  return Read<Schedule, proto::Schedule>(path);
}

absl::Status WriteTimeline(const std::string& path, const Timeline& timeline) {
  return Write(path, ToProto(timeline));
}

absl::StatusOr<std::string> EncodeTimeline(const std::string& path, const Timeline& timeline) {
  return Encode(path, ToProto(timeline));
}

absl::StatusOr<Timeline> ReadTimeline(const std::string& path) {
  return Read<Timeline, proto::Timeline>(path);
}

}  // namespace optimus::ir
