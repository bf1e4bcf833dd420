#include "traces/kineto/file_time.h"

#include <cstddef>

#include "absl/numeric/int128.h"

namespace optimus::traces {
namespace {

constexpr int kDecimals = 6;  // of a microsecond: picoseconds
constexpr std::int64_t kLargestExponent = 1000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A JSON number in parts: digits times ten to the power of exponent.
struct Number {
  bool negative = false;
  absl::int128 digits = 0;
  std::int64_t exponent = 0;
};

class NumberReader {
 public:
  explicit NumberReader(absl::string_view text) : text_(text) {}

  std::optional<Number> Read() {
    if (Take('-')) number_.negative = true;
    if (!Digits(0)) return std::nullopt;
    if (Take('.') && !Digits(-1)) return std::nullopt;
    if ((Take('e') || Take('E')) && !Exponent()) return std::nullopt;
    if (at_ != text_.size()) return std::nullopt;
    return number_;
  }

 private:
  bool Take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // Up to 36 digits count; of the fraction's, those behind them are far too small to matter.
  bool Digits(int exponent_of_each) {
    static const absl::int128 kMost =
        absl::int128{1'000'000'000'000'000'000} * 100'000'000'000'000'000;
    const std::size_t first = at_;
    for (; at_ < text_.size() && IsDigit(text_[at_]); ++at_) {
      if (number_.digits >= kMost) {
        if (exponent_of_each == 0) return false;
        continue;
      }
      number_.digits = number_.digits * 10 + (text_[at_] - '0');
      number_.exponent += exponent_of_each;
    }
    return at_ > first;
  }

  bool Exponent() {
    const bool negative = Take('-');
    if (!negative) Take('+');
    const std::size_t first = at_;
    std::int64_t value = 0;
    for (; at_ < text_.size() && IsDigit(text_[at_]); ++at_) {
      if (value < kLargestExponent) value = value * 10 + (text_[at_] - '0');
    }
    number_.exponent += negative ? -value : value;
    return at_ > first;
  }

  absl::string_view text_;
  std::size_t at_ = 0;
  Number number_;
};

// digits x 10^exponent as a whole number, rounded half up; nullopt: too large.
std::optional<absl::int128> Whole(absl::int128 digits, std::int64_t exponent) {
  static const absl::int128 kMost = absl::MakeInt128(std::int64_t{1} << 60, 0);
  for (; exponent > 0 && digits != 0; --exponent) {
    if (digits > kMost / 10) return std::nullopt;
    digits *= 10;
  }
  int last = 0;
  for (; exponent < 0 && (digits != 0 || last != 0); ++exponent) {
    last = static_cast<int>(digits % 10);
    digits /= 10;
  }
  return last >= 5 ? digits + 1 : digits;
}

std::optional<FileTime> FromPicoseconds(absl::int128 ps) {
  absl::int128 ns = ps / 1000;
  auto rest = static_cast<std::int32_t>(ps % 1000);
  if (rest < 0) {
    rest += 1000;
    ns -= 1;
  }
  const auto fits = static_cast<std::int64_t>(ns);
  if (absl::int128(fits) != ns) return std::nullopt;
  return FileTime{fits, rest};
}

// The usual case: "123456.789", without an exponent, of a few digits.
std::optional<FileTime> ParseShort(absl::string_view text) {
  constexpr std::size_t kMostWhole = 15;
  std::int64_t whole = 0;
  std::size_t at = 0;
  for (; at < text.size() && IsDigit(text[at]); ++at) {
    if (at == kMostWhole + 1) return std::nullopt;
    whole = whole * 10 + (text[at] - '0');
  }
  if (at == 0) return std::nullopt;
  std::int32_t picoseconds = 0;
  if (at < text.size()) {
    if (text[at] != '.' || text.size() - at - 1 > kDecimals || text.size() == at + 1) {
      return std::nullopt;
    }
    int decimals = 0;
    for (++at; at < text.size(); ++at, ++decimals) {
      if (!IsDigit(text[at])) return std::nullopt;
      picoseconds = picoseconds * 10 + (text[at] - '0');
    }
    for (; decimals < kDecimals; ++decimals) picoseconds *= 10;
  }
  // At most 10^16 - 1 microseconds: in nanoseconds just over 2^63, so it is bounded once more.
  if (whole > 9'000'000'000'000'000) return std::nullopt;
  return FileTime{whole * 1000 + picoseconds / 1000, picoseconds % 1000};
}

}  // namespace

std::optional<FileTime> ParseMicroseconds(absl::string_view text) {
  if (const std::optional<FileTime> time = ParseShort(text)) return time;
  const std::optional<Number> number = NumberReader(text).Read();
  if (!number.has_value()) return std::nullopt;
  const std::optional<absl::int128> ps = Whole(number->digits, number->exponent + kDecimals);
  if (!ps.has_value()) return std::nullopt;
  return FromPicoseconds(number->negative ? -*ps : *ps);
}

std::optional<Picoseconds> Difference(FileTime a, FileTime b) {
  const absl::int128 difference = (absl::int128(a.ns) - absl::int128(b.ns)) * 1000 + (a.ps - b.ps);
  const auto fits = static_cast<std::int64_t>(difference);
  if (absl::int128(fits) != difference) return std::nullopt;
  return Picoseconds(fits);
}

std::optional<FileTime> Sum(FileTime a, Picoseconds b) {
  return FromPicoseconds(absl::int128(a.ns) * 1000 + a.ps + absl::int128(b.value()));
}

}  // namespace optimus::traces
