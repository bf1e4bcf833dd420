#include "traces/chakra/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::traces::chakra {
namespace {
// The window begins small (most files are) and grows up to what makes reading fast.
constexpr std::size_t kFirstPiece = std::size_t{16} << 10;
constexpr std::size_t kPiece = std::size_t{256} << 10;
}  // namespace

ByteSource::ByteSource(absl::string_view bytes, std::string name)
    : name_(std::move(name)), rest_(bytes) {}

absl::StatusOr<ByteSource> ByteSource::Open(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) {
    return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  }
  ByteSource source(absl::string_view(), path);
  source.file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (source.file_ < 0) return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  return source;
}

// Only before the first Fill: zlib's state knows its own address.
ByteSource::ByteSource(ByteSource&& other) noexcept
    : name_(std::move(other.name_)), file_(std::exchange(other.file_, -1)), rest_(other.rest_) {}

ByteSource::~ByteSource() {
  if (inflating_) inflateEnd(&stream_);
  if (file_ >= 0) close(file_);
}

absl::string_view ByteSource::Window() const {
  return content_.empty() ? absl::string_view()
                          : absl::string_view(content_.data() + first_, end_ - first_);
}

void ByteSource::Take(std::size_t count) {
  first_ += count;
  offset_ += count;
}

absl::StatusOr<std::size_t> ByteSource::ReadRaw(absl::Span<char> room) {
  if (file_ < 0) {
    const std::size_t count = std::min(room.size(), rest_.size());
    std::copy_n(rest_.data(), count, room.data());
    rest_.remove_prefix(count);
    return count;
  }
  while (true) {
    const ssize_t count = read(file_, room.data(), room.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) {
      return absl::DataLossError(absl::StrCat(name_, ": ", std::strerror(errno)));
    }
  }
}

// At least two raw bytes in the input, where there are so many: enough for gzip's mark.
absl::Status ByteSource::RefillInput() {
  if (input_end_ - input_first_ >= 2) return absl::OkStatus();
  if (input_.empty()) input_.resize(kFirstPiece);
  std::copy(input_.begin() + static_cast<std::ptrdiff_t>(input_first_),
            input_.begin() + static_cast<std::ptrdiff_t>(input_end_), input_.begin());
  input_end_ -= input_first_;
  input_first_ = 0;
  while (input_end_ < 2) {
    OPTIMUS_ASSIGN_OR_RETURN(const std::size_t count,
                             ReadRaw(absl::MakeSpan(input_).subspan(input_end_)));
    if (count == 0) break;
    input_end_ += count;
  }
  return absl::OkStatus();
}

absl::Status ByteSource::StartInflating() {
  constexpr int kGzip = 16 + MAX_WBITS;
  const int result = inflating_ ? inflateReset(&stream_) : inflateInit2(&stream_, kGzip);
  if (result != Z_OK) return absl::ResourceExhaustedError(absl::StrCat(name_, ": zlib"));
  inflating_ = true;
  return absl::OkStatus();
}

// Gzip streams one behind the other are one content, as gzip has it.
absl::StatusOr<std::size_t> ByteSource::Inflate(absl::Span<char> room) {
  stream_.next_out = reinterpret_cast<Bytef*>(room.data());
  stream_.avail_out = static_cast<uInt>(room.size());
  while (stream_.avail_out == room.size()) {
    if (input_first_ == input_end_) OPTIMUS_RETURN_IF_ERROR(RefillInput());
    if (input_first_ == input_end_) {
      return absl::InvalidArgumentError(
          absl::StrCat(name_, ": gzip stream ends before its end (truncated file?)"));
    }
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data() + input_first_);
    stream_.avail_in = static_cast<uInt>(input_end_ - input_first_);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    input_first_ = input_end_ - stream_.avail_in;
    if (result == Z_STREAM_END) {
      OPTIMUS_RETURN_IF_ERROR(RefillInput());
      if (input_first_ == input_end_) {
        ended_ = true;
        break;
      }
      OPTIMUS_RETURN_IF_ERROR(StartInflating());
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return absl::InvalidArgumentError(absl::StrCat(name_, ": damaged gzip stream"));
    }
  }
  return room.size() - stream_.avail_out;
}

absl::StatusOr<std::size_t> ByteSource::ReadContent(absl::Span<char> room) {
  if (!started_) {
    started_ = true;
    OPTIMUS_RETURN_IF_ERROR(RefillInput());
    gzip_ = input_end_ >= 2 && input_[0] == '\x1f' && input_[1] == '\x8b';
    if (gzip_) OPTIMUS_RETURN_IF_ERROR(StartInflating());
  }
  if (gzip_) return Inflate(room);
  if (input_first_ < input_end_) {
    const std::size_t count = std::min(room.size(), input_end_ - input_first_);
    std::copy_n(input_.data() + input_first_, count, room.data());
    input_first_ += count;
    return count;
  }
  OPTIMUS_ASSIGN_OR_RETURN(const std::size_t count, ReadRaw(room));
  if (count == 0) ended_ = true;
  return count;
}

// Grows with what is there, not with what is wanted: a length of a damaged file is no reason to
// allocate it.
absl::Status ByteSource::Fill(std::size_t wanted) {
  if (end_ - first_ >= wanted) return absl::OkStatus();
  if (first_ > 0) {
    std::copy(content_.begin() + static_cast<std::ptrdiff_t>(first_),
              content_.begin() + static_cast<std::ptrdiff_t>(end_), content_.begin());
    end_ -= first_;
    first_ = 0;
  }
  while (end_ < wanted && !ended_) {
    if (content_.size() < 2 * kPiece || content_.size() - end_ < kPiece) {
      content_.resize(std::max(2 * content_.size(), kFirstPiece));
    }
    OPTIMUS_ASSIGN_OR_RETURN(const std::size_t count,
                             ReadContent(absl::MakeSpan(content_).subspan(end_)));
    end_ += count;
  }
  return absl::OkStatus();
}

}  // namespace optimus::traces::chakra
