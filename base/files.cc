#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/parse_text_proto.h"
#include "base/staged_files.h"
#include "base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace optimus {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(std::string path) : path_(std::move(path)) {}
  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = line < 0 ? absl::StrCat(path_, ": ", message)
                     : absl::StrCat(path_, ":", line + 1, ":", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string path_;
  std::string text_;
};

constexpr char kStandardInput[] = "/dev/stdin";

absl::Status CannotOpen(const std::string& path, int error) {
  const std::string text = absl::StrCat(path, ": ", std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(text) : absl::InvalidArgumentError(text);
}

absl::Status CheckReadable(const std::string& path, int descriptor) {
  struct stat info {};
  if (fstat(descriptor, &info) != 0) return CannotOpen(path, errno);
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a directory, not a file"));
  }
  if (!S_ISREG(info.st_mode) && path != kStandardInput) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a device or pipe, not a file; only ",
                                                   kStandardInput, " is read as a stream"));
  }
  // From here on reads wait: standard input may be slow.
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0 || fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK) != 0) {
    return CannotOpen(path, errno);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadAll(const std::string& path, int descriptor) {
  std::string content;
  std::vector<char> buffer(std::size_t{1} << 16);
  while (true) {
    const ssize_t n = read(descriptor, buffer.data(), buffer.size());
    if (n > 0) {
      content.append(buffer.data(), static_cast<std::size_t>(n));
    } else if (n == 0) {
      return content;
    } else if (errno != EINTR) {
      return absl::DataLossError(absl::StrCat(path, ": cannot read: ", std::strerror(errno)));
    }
  }
}

// The first string of `message`, or of one inside it, that is not valid UTF-8: "plan.layout", or
// nothing.
std::string InvalidUtf8Field(const Message& message);

std::string InvalidUtf8In(const Message& message, const FieldDescriptor* field, int index) {
  const auto* reflection = message.GetReflection();
  const std::string name = index < 0 ? field->name() : absl::StrCat(field->name(), "[", index, "]");
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    const std::string inner =
        InvalidUtf8Field(index < 0 ? reflection->GetMessage(message, field)
                                   : reflection->GetRepeatedMessage(message, field, index));
    return inner.empty() ? "" : absl::StrCat(name, ".", inner);
  }
  if (field->type() != FieldDescriptor::TYPE_STRING) return "";
  const std::string text = index < 0 ? reflection->GetString(message, field)
                                     : reflection->GetRepeatedString(message, field, index);
  return google::protobuf::internal::IsStructurallyValidUTF8(text) ? "" : name;
}

std::string InvalidUtf8Field(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      std::string name = InvalidUtf8In(message, field, field->is_repeated() ? i : -1);
      if (!name.empty()) return name;
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError("the name of a file to read is empty");
  // Not blocking: opening a pipe would wait for a writer before we see that it is a pipe.
  const int descriptor = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return CannotOpen(path, errno);
  absl::StatusOr<std::string> content;
  if (absl::Status readable = CheckReadable(path, descriptor); !readable.ok()) {
    content = readable;
  } else {
    content = ReadAll(path, descriptor);
  }
  close(descriptor);
  if (content.ok() && content->empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is empty"));
  }
  return content;
}

absl::Status WriteFileAtomically(const std::string& path, const std::string& content) {
  StagedFiles files;
  OPTIMUS_RETURN_IF_ERROR(files.Add(path, content));
  return files.Commit();
}

absl::Status ReadTextProto(const std::string& path, google::protobuf::Message& message) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseTextProto(path, text, message);
}

absl::Status ParseTextProto(const std::string& path, const std::string& text,
                            google::protobuf::Message& message) {
  FirstError errors(path);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  if (!parser.ParseFromString(text, &message)) return absl::InvalidArgumentError(errors.text());
  if (const std::string field = InvalidUtf8Field(message); !field.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", field, ": is not valid UTF-8; hint: save the file as UTF-8"));
  }
  return absl::OkStatus();
}

std::string DataDir() {
  if (const char* dir = std::getenv("OPTIMUS_DATA_DIR"); dir != nullptr && *dir != '\0') return dir;
  return OPTIMUS_SOURCE_DIR;
}

std::string KnownNames(const std::vector<std::string>& names, const std::string& folder) {
  if (!names.empty()) {
    return absl::StrCat("known: ", absl::StrJoin(names, ", "), " (from ", folder, ")");
  }
  const bool set = DataDir() != OPTIMUS_SOURCE_DIR;
  return absl::StrCat("none are known, for ", folder, " is missing or empty; ",
                      set ? "OPTIMUS_DATA_DIR leads there: set it to"
                          : "set the environment variable OPTIMUS_DATA_DIR to",
                      " the folder that holds models/zoo and hw_profiles/zoo");
}

}  // namespace optimus
