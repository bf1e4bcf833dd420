#include "traces/chakra/message_reader.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace optimus::traces::chakra {
namespace {

namespace pb = google::protobuf;

constexpr std::size_t kJsonHead = 4096;  // of a JSON file: enough to say whose it is

// The value of "schema" in the head of a PyTorch trace; empty: not found.
std::string SchemaOf(absl::string_view head) {
  const std::size_t key = head.find("\"schema\"");
  if (key == absl::string_view::npos) return "";
  const std::size_t first = head.find('"', head.find(':', key));
  if (first == absl::string_view::npos) return "";
  const std::size_t last = head.find('"', first + 1);
  if (last == absl::string_view::npos || last - first > 64) return "";
  return std::string(head.substr(first + 1, last - first - 1));
}

std::string WhichJson(absl::string_view head) {
  if (absl::StrContains(head, "\"traceEvents\"") || absl::StrContains(head, "\"schemaVersion\"")) {
    return "a Kineto or Chrome trace (JSON), not a Chakra execution trace; hint: give it as a "
           "Kineto trace";
  }
  if (absl::StrContains(head, "\"workload_graph\"")) {
    return "Chakra's JSON form of a graph (workload_graph), which is not read; hint: give the .et "
           "file that it was made from";
  }
  if (const std::string schema = SchemaOf(head); !schema.empty()) {
    return absl::StrCat(
        "a PyTorch execution trace (JSON, schema ", schema,
        "), not a Chakra execution trace; hint: chakra_trace_link joins it with the "
        "Kineto trace of the same run, chakra_converter makes an .et file of that");
  }
  return "JSON, not a Chakra execution trace (protobuf)";
}

// Of the message itself, not of those in it.
template <class Message>
std::string UnknownIn(const Message& message) {
  const pb::UnknownFieldSet& fields = message.GetReflection()->GetUnknownFields(message);
  if (fields.empty()) return "";
  return absl::StrCat(message.GetDescriptor()->name(), " has a field ", fields.field(0).number());
}

// The one message that an attribute can hold: a list.
std::string UnknownInList(const AttributeProto& attribute) {
  const pb::Reflection& reflection = *attribute.GetReflection();
  const pb::OneofDescriptor* value = attribute.GetDescriptor()->FindOneofByName("value");
  const pb::FieldDescriptor* field = reflection.GetOneofFieldDescriptor(attribute, value);
  if (field == nullptr || field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE) return "";
  return UnknownIn(reflection.GetMessage(attribute, field));
}

bool IsOneValue(const AttributeProto& attribute) {
  switch (attribute.value_case()) {
    case AttributeProto::kBoolVal:
    case AttributeProto::kInt32Val:
    case AttributeProto::kInt64Val:
    case AttributeProto::kUint64Val:
    case AttributeProto::kStringVal:
      return true;
    default:
      return false;
  }
}

// Message and field number of the first field that the schema does not have; empty: none.
std::string UnknownField(const pb::RepeatedPtrField<AttributeProto>& attributes) {
  for (const AttributeProto& attribute : attributes) {
    if (std::string unknown = UnknownIn(attribute); !unknown.empty()) return unknown;
    if (IsOneValue(attribute)) continue;
    if (std::string unknown = UnknownInList(attribute); !unknown.empty()) return unknown;
  }
  return "";
}

std::string UnknownField(const GlobalMetadata& metadata) {
  std::string unknown = UnknownIn(metadata);
  return unknown.empty() ? UnknownField(metadata.attr()) : unknown;
}

std::string UnknownField(const Node& node) {
  std::string unknown = UnknownIn(node);
  if (unknown.empty() && node.has_inputs()) unknown = UnknownIn(node.inputs());
  if (unknown.empty() && node.has_outputs()) unknown = UnknownIn(node.outputs());
  return unknown.empty() ? UnknownField(node.attr()) : unknown;
}

}  // namespace

std::string MessageReader::Where() const {
  return absl::StrCat(window_.name(), ": byte ", offset_, ": ");
}

// A file whose first message is 123 bytes long begins with '{' as well, but behind that stands the
// key of a field, and no JSON has one there.
absl::Status MessageReader::CheckIsNoJson() {
  OPTIMUS_RETURN_IF_ERROR(window_.Fill(kJsonHead));
  const absl::string_view head = window_.Content();
  if (head.empty()) return absl::InvalidArgumentError(absl::StrCat(window_.name(), ": empty file"));
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(head);
  if (text.empty() || (text[0] != '{' && text[0] != '[')) return absl::OkStatus();
  const absl::string_view behind = absl::StripLeadingAsciiWhitespace(text.substr(1));
  const bool is_json =
      !behind.empty() && (text[0] == '{' ? behind[0] == '"' : behind[0] == '{' || behind[0] == '[');
  if (!is_json) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(window_.name(), ": ", WhichJson(head)));
}

// 10 bytes are the longest varint, 5 the longest length that is taken.
absl::StatusOr<std::uint64_t> MessageReader::ReadLength() {
  OPTIMUS_RETURN_IF_ERROR(window_.Fill(10));
  const absl::string_view content = window_.Content();
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(content.size(), 5); ++i) {
    const auto byte = static_cast<unsigned char>(content[i]);
    length |= std::uint64_t{byte & 0x7fu} << (7 * i);
    if ((byte & 0x80u) == 0) {
      window_.Take(i + 1);
      return length;
    }
  }
  if (content.size() < 5) {
    return absl::InvalidArgumentError(
        absl::StrCat(Where(), "file ends inside the length of a message (truncated file?)"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Where(), "no length of a message; hint: not a Chakra execution trace?"));
}

absl::StatusOr<bool> MessageReader::Next(GlobalMetadata& metadata) { return Parse(metadata); }
absl::StatusOr<bool> MessageReader::Next(Node& node) { return Parse(node); }

template <class Message>
absl::StatusOr<bool> MessageReader::Parse(Message& message) {
  offset_ = window_.offset();
  OPTIMUS_RETURN_IF_ERROR(window_.Fill(1));
  if (window_.Content().empty()) return false;
  OPTIMUS_ASSIGN_OR_RETURN(const std::uint64_t length, ReadLength());
  if (length > kLongestMessage) {
    return absl::InvalidArgumentError(
        absl::StrCat(Where(), "message of ", length, " bytes; the longest that is read has ",
                     kLongestMessage, "; hint: not a Chakra execution trace?"));
  }
  OPTIMUS_RETURN_IF_ERROR(window_.Fill(length));
  const absl::string_view content = window_.Content();
  if (content.size() < length) {
    return absl::InvalidArgumentError(absl::StrCat(Where(), "message of ", length,
                                                   " bytes, but the file ends ", content.size(),
                                                   " bytes into it (truncated file?)"));
  }
  if (!message.ParseFromArray(content.data(), static_cast<int>(length))) {
    return absl::InvalidArgumentError(
        absl::StrCat(Where(), "not a ", message.GetDescriptor()->name(),
                     " of Chakra's schema 0.0.4 or 1.0.0; hint: files of the schemas before 0.0.4 "
                     "(2023, without ",
                     "GlobalMetadata in front) are not read"));
  }
  window_.Take(length);
  if (const std::string unknown = UnknownField(message); !unknown.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Where(), unknown, ", which Chakra's schema 0.0.4 and 1.0.0 does not have; ",
                     "hint: the file was written by another schema"));
  }
  return true;
}

}  // namespace optimus::traces::chakra
