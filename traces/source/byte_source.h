#pragma once
// Bytes of a file or of a text, one piece after another, as often as one likes.

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optimus::traces {

class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;
  // Up to `size` (> 0) bytes into `data`; 0: the end. Errors do not name the file.
  virtual absl::StatusOr<std::size_t> Read(char* data, std::size_t size) = 0;
  // The next Read starts from the front again.
  virtual absl::Status Rewind() = 0;
};

// A regular file. NOT_FOUND, or INVALID_ARGUMENT (a folder, device or pipe: read twice, it would be
// another one the second time). Errors name the file.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenFileSource(const std::string& path);

// `text` outlives it.
std::unique_ptr<ByteSource> TextSource(absl::string_view text);

// What `source` has inside, where its first bytes are gzip's (of one member or several); else
// `source` itself.
absl::StatusOr<std::unique_ptr<ByteSource>> Unzipped(std::unique_ptr<ByteSource> source);

}  // namespace optimus::traces
