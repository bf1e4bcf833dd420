#include "traces/source/gzip_source.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::traces {
namespace {

constexpr std::size_t kPackedWindow = std::size_t{256} << 10;
constexpr int kGzipOnly = 16 + MAX_WBITS;

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(std::unique_ptr<ByteSource> packed)
      : packed_(std::move(packed)), window_(kPackedWindow) {}
  ~GzipSource() override {
    if (ready_) inflateEnd(&stream_);
  }

  absl::Status Start() {
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) {
      return absl::ResourceExhaustedError("gzip: out of memory");
    }
    ready_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<std::size_t> Read(char* data, std::size_t size) override {
    const auto most = std::min<std::size_t>(size, std::numeric_limits<uInt>::max());
    stream_.next_out = reinterpret_cast<Bytef*>(data);
    stream_.avail_out = static_cast<uInt>(most);
    while (stream_.avail_out == most) {
      OPTIMUS_ASSIGN_OR_RETURN(const bool more, Step());
      if (!more) break;
    }
    return most - stream_.avail_out;
  }

  absl::Status Rewind() override {
    OPTIMUS_RETURN_IF_ERROR(packed_->Rewind());
    inflateReset(&stream_);
    stream_.avail_in = 0;
    taken_ = 0;
    between_members_ = false;
    return absl::OkStatus();
  }

 private:
  // One call of inflate; false: nothing comes any more.
  absl::StatusOr<bool> Step() {
    OPTIMUS_ASSIGN_OR_RETURN(const bool more, Fill());
    if (!more) {
      if (between_members_) return false;
      return absl::DataLossError(absl::StrCat("gzip: cut off behind byte ", taken_));
    }
    if (between_members_) {
      inflateReset(&stream_);
      between_members_ = false;
    }
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      between_members_ = true;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return absl::DataLossError(absl::StrCat(
          "gzip: damaged near byte ", taken_ - stream_.avail_in, stream_.msg == nullptr ? "" : " (",
          stream_.msg == nullptr ? "" : stream_.msg, stream_.msg == nullptr ? "" : ")"));
    }
    return true;
  }

  absl::StatusOr<bool> Fill() {
    if (stream_.avail_in > 0) return true;
    OPTIMUS_ASSIGN_OR_RETURN(
        const std::size_t got,
        packed_->Read(reinterpret_cast<char*>(window_.data()), window_.size()));
    taken_ += got;
    stream_.next_in = window_.data();
    stream_.avail_in = static_cast<uInt>(got);
    return got > 0;
  }

  std::unique_ptr<ByteSource> packed_;
  std::vector<Bytef> window_;
  z_stream stream_{};
  bool ready_ = false;
  bool between_members_ = false;
  std::size_t taken_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> MakeGzipSource(std::unique_ptr<ByteSource> packed) {
  auto source = std::make_unique<GzipSource>(std::move(packed));
  OPTIMUS_RETURN_IF_ERROR(source->Start());
  return source;
}

}  // namespace optimus::traces
