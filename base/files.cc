#include "base/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace optimus {
namespace {

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

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a directory, not a file"));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  std::ostringstream content;
  content << in.rdbuf();
  if (in.bad()) return absl::DataLossError(absl::StrCat(path, ": read failed"));
  return std::move(content).str();
}

absl::Status WriteFileAtomically(const std::string& path, const std::string& content) {
  const std::string temporary = absl::StrCat(path, ".tmp.", getpid());
  auto failed = [&](const char* what) {
    const std::string reason = std::strerror(errno);
    std::remove(temporary.c_str());
    return absl::UnavailableError(absl::StrCat(path, ": cannot ", what, ": ", reason));
  };
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  if (!out) return failed("write");
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) return failed("write");
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return failed("rename into place");
  return absl::OkStatus();
}

absl::Status ReadTextProto(const std::string& path, google::protobuf::Message& message) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  FirstError errors(path);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  if (!parser.ParseFromString(text, &message)) return absl::InvalidArgumentError(errors.text());
  return absl::OkStatus();
}

std::string DataDir() {
  if (const char* dir = std::getenv("OPTIMUS_DATA_DIR"); dir != nullptr && *dir != '\0') return dir;
  return OPTIMUS_SOURCE_DIR;
}

}  // namespace optimus
