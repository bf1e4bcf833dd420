#include "traces/source/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "traces/source/gzip_source.h"

namespace optimus::traces {
namespace {

class FileSource final : public ByteSource {
 public:
  explicit FileSource(int descriptor) : descriptor_(descriptor) {}
  ~FileSource() override { ::close(descriptor_); }

  absl::StatusOr<std::size_t> Read(char* data, std::size_t size) override {
    for (;;) {
      const ssize_t got = ::read(descriptor_, data, size);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) {
        return absl::DataLossError(absl::StrCat("reading failed: ", std::strerror(errno)));
      }
    }
  }

  absl::Status Rewind() override {
    if (::lseek(descriptor_, 0, SEEK_SET) == 0) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("cannot be read twice: ", std::strerror(errno)));
  }

 private:
  int descriptor_;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::size_t> Read(char* data, std::size_t size) override {
    const std::size_t got = std::min(size, text_.size() - position_);
    std::copy_n(text_.data() + position_, got, data);
    position_ += got;
    return got;
  }

  absl::Status Rewind() override {
    position_ = 0;
    return absl::OkStatus();
  }

 private:
  absl::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> OpenFileSource(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const std::string text = absl::StrCat(path, ": ", std::strerror(errno));
    return errno == ENOENT ? absl::NotFoundError(text) : absl::InvalidArgumentError(text);
  }
  auto source = std::make_unique<FileSource>(descriptor);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": not a regular file; hint: a trace is read twice, so a pipe will not do"));
  }
  return source;
}

std::unique_ptr<ByteSource> TextSource(absl::string_view text) {
  return std::make_unique<MemorySource>(text);
}

absl::StatusOr<std::unique_ptr<ByteSource>> Unzipped(std::unique_ptr<ByteSource> source) {
  char magic[2] = {};
  std::size_t size = 0;
  while (size < sizeof(magic)) {
    OPTIMUS_ASSIGN_OR_RETURN(const std::size_t got,
                             source->Read(magic + size, sizeof(magic) - size));
    if (got == 0) break;
    size += got;
  }
  OPTIMUS_RETURN_IF_ERROR(source->Rewind());
  const bool gzip = size == 2 && magic[0] == '\x1f' && magic[1] == '\x8b';
  if (!gzip) return source;
  return MakeGzipSource(std::move(source));
}

}  // namespace optimus::traces
