#include "tools/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>

#include "absl/status/status.h"

namespace optimus::tools {
namespace {

constexpr int kGzipWindow = 15 + 16;                  // zlib: 32 KiB, with a gzip header
constexpr int kMemoryLevel = 8;                       // zlib's default
constexpr std::size_t kPiece = std::size_t{1} << 30;  // zlib counts in 32 bits

// Compresses what the stream was given; the last piece ends the file.
void Deflate(z_stream& stream, bool last, std::string& out) {
  std::array<char, 1 << 16> buffer{};
  do {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);  // cannot fail: the stream is whole
    out.append(buffer.data(), buffer.size() - stream.avail_out);
  } while (stream.avail_out == 0);
}

}  // namespace

absl::StatusOr<std::string> Gzip(absl::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return absl::ResourceExhaustedError("gzip: out of memory");
  }
  std::string out;
  do {
    const absl::string_view piece = text.substr(0, kPiece);
    text.remove_prefix(piece.size());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream.avail_in = static_cast<uInt>(piece.size());
    Deflate(stream, text.empty(), out);
  } while (!text.empty());
  deflateEnd(&stream);
  return out;
}

}  // namespace optimus::tools
