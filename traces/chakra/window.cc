#include "traces/chakra/window.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::traces::chakra {
namespace {

// The window begins small (most files are) and grows up to what makes reading fast.
constexpr std::size_t kFirstPiece = std::size_t{16} << 10;
constexpr std::size_t kPiece = std::size_t{256} << 10;

absl::Status Named(const std::string& name, const absl::Status& status) {
  return {status.code(), absl::StrCat(name, ": ", status.message())};
}

}  // namespace

Window::Window(std::unique_ptr<ByteSource> source, std::string name)
    : source_(std::move(source)), name_(std::move(name)) {}

absl::StatusOr<Window> Window::OfFile(const std::string& path) {
  OPTIMUS_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> file, OpenFileSource(path));
  auto content = Unzipped(std::move(file));
  if (!content.ok()) return Named(path, content.status());
  return Window(*std::move(content), path);
}

absl::StatusOr<Window> Window::OfBytes(absl::string_view bytes, std::string name) {
  auto content = Unzipped(TextSource(bytes));
  if (!content.ok()) return Named(name, content.status());
  return Window(*std::move(content), std::move(name));
}

absl::string_view Window::Content() const {
  return content_.empty() ? absl::string_view()
                          : absl::string_view(content_.data() + first_, end_ - first_);
}

void Window::Take(std::size_t count) {
  first_ += count;
  offset_ += count;
}

// Grows with what is there, not with what is wanted: a length of a damaged file is no reason to
// allocate it.
absl::Status Window::Fill(std::size_t wanted) {
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
    const absl::StatusOr<std::size_t> count =
        source_->Read(content_.data() + end_, content_.size() - end_);
    if (!count.ok()) return Named(name_, count.status());
    ended_ = *count == 0;
    end_ += *count;
  }
  return absl::OkStatus();
}

}  // namespace optimus::traces::chakra
