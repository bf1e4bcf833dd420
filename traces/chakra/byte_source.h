#pragma once
// The content of a file or buffer in order, gunzipped where it is a gzip stream.

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace optimus::traces::chakra {

class ByteSource {
 public:
  // `bytes` outlive it. `name` is what errors call it.
  ByteSource(absl::string_view bytes, std::string name);
  // NOT_FOUND, INVALID_ARGUMENT (a folder, device or pipe), naming `path`.
  static absl::StatusOr<ByteSource> Open(const std::string& path);

  ByteSource(ByteSource&& other) noexcept;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  ByteSource& operator=(ByteSource&&) = delete;
  ~ByteSource();

  // Tries to have `wanted` bytes in Window(); fewer are there only where the content ends.
  // INVALID_ARGUMENT where a gzip stream is damaged or truncated, DATA_LOSS where reading fails.
  absl::Status Fill(std::size_t wanted);
  // What was filled and not yet taken. Valid until the next Fill.
  absl::string_view Window() const;
  void Take(std::size_t count);  // count <= Window().size()
  // Of the first byte of the window in the (gunzipped) content.
  std::uint64_t offset() const { return offset_; }
  const std::string& name() const { return name_; }

 private:
  // Raw bytes into `room`; 0 at the end.
  absl::StatusOr<std::size_t> ReadRaw(absl::Span<char> room);
  absl::StatusOr<std::size_t> ReadContent(absl::Span<char> room);
  absl::StatusOr<std::size_t> Inflate(absl::Span<char> room);
  absl::Status RefillInput();
  absl::Status StartInflating();

  std::string name_;
  int file_ = -1;
  absl::string_view rest_;   // of a buffer
  std::vector<char> input_;  // raw bytes
  std::size_t input_first_ = 0, input_end_ = 0;
  std::vector<char> content_;  // window: [first_, end_)
  std::size_t first_ = 0, end_ = 0;
  std::uint64_t offset_ = 0;
  bool started_ = false, gzip_ = false, inflating_ = false, ended_ = false;
  z_stream stream_{};
};

}  // namespace optimus::traces::chakra
