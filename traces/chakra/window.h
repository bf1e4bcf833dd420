#pragma once
// The content of a file or text in order, through a window that grows as far as is asked.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "traces/source/byte_source.h"

namespace optimus::traces::chakra {

class Window {
 public:
  // Gunzipped where it is a gzip stream. Errors name `path`.
  static absl::StatusOr<Window> OfFile(const std::string& path);
  // The same of bytes, which outlive it. `name` is what errors call them.
  static absl::StatusOr<Window> OfBytes(absl::string_view bytes, std::string name);

  // Tries to have `wanted` bytes in Content(); fewer are there only where the content ends. Errors
  // (damaged gzip, reading fails) name the file.
  absl::Status Fill(std::size_t wanted);
  // What was filled and not yet taken. Valid until the next Fill.
  absl::string_view Content() const;
  void Take(std::size_t count);  // count <= Content().size()
  // Of the first byte of the window in the (gunzipped) content.
  std::uint64_t offset() const { return offset_; }
  const std::string& name() const { return name_; }

 private:
  Window(std::unique_ptr<ByteSource> source, std::string name);

  std::unique_ptr<ByteSource> source_;
  std::string name_;
  std::vector<char> content_;  // window: [first_, end_)
  std::size_t first_ = 0, end_ = 0;
  std::uint64_t offset_ = 0;
  bool ended_ = false;
};

}  // namespace optimus::traces::chakra
