#include "executor/runtime/times_codec.h"

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace optimus::executor {
namespace {

// Small numbers of either sign become small unsigned ones.
std::uint64_t ZigZag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
std::int64_t UnZigZag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

// Broken bytes may hold any numbers: they wrap around.
std::int64_t Sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

void Append(std::int64_t difference, std::string& out) {
  std::uint64_t value = ZigZag(difference);
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  bool at_end() const { return next_ == bytes_.size(); }

  std::optional<std::int64_t> Next() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && next_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(bytes_[next_++]);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return UnZigZag(value);
    }
    return std::nullopt;
  }

 private:
  const std::string& bytes_;
  std::size_t next_ = 0;
};

}  // namespace

std::string EncodeTimes(const std::vector<OperationTime>& times) {
  std::string out;
  std::int64_t previous = 0;
  for (const OperationTime& time : times) {
    Append(time.begin_ns - previous, out);
    Append(time.end_ns - time.begin_ns, out);
    previous = time.begin_ns;
  }
  return out;
}

absl::StatusOr<std::vector<OperationTime>> DecodeTimes(const std::string& bytes,
                                                       std::size_t count) {
  Reader reader(bytes);
  std::vector<OperationTime> times;
  std::int64_t previous = 0;
  while (!reader.at_end() && times.size() < count) {
    const std::optional<std::int64_t> begin = reader.Next();
    const std::optional<std::int64_t> length = reader.Next();
    if (!begin.has_value() || !length.has_value()) break;
    OperationTime time;
    time.begin_ns = Sum(previous, *begin);
    time.end_ns = Sum(time.begin_ns, *length);
    times.push_back(time);
    previous = time.begin_ns;
  }
  if (times.size() == count && reader.at_end()) return times;
  return absl::DataLossError(absl::StrCat("measured times: ", bytes.size(), " bytes hold ",
                                          times.size(), " operations, not ", count));
}

}  // namespace optimus::executor
