#include "tools/printable.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/stubs/common.h"

namespace optimus::tools {
namespace {

std::uint8_t Byte(char c) { return static_cast<std::uint8_t>(c); }

// Bytes of the character that starts with `lead`, by its first bits.
std::size_t Length(char lead) {
  if (Byte(lead) < 0x80) return 1;
  if (Byte(lead) < 0xe0) return 2;
  return Byte(lead) < 0xf0 ? 3 : 4;
}

bool IsPrintable(absl::string_view character) {
  const std::uint8_t lead = Byte(character.front());
  if (character.size() == 1) return lead >= 0x20 && lead < 0x7f;
  if (lead == 0xc2 && Byte(character[1]) < 0xa0) return false;  // C1
  return google::protobuf::internal::IsStructurallyValidUTF8(character.data(),
                                                             static_cast<int>(character.size()));
}

bool InsideCharacter(char c) { return (Byte(c) & 0xc0) == 0x80; }

}  // namespace

std::string Printable(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    const absl::string_view character = text.substr(0, Length(text.front()));
    if (IsPrintable(character)) {
      absl::StrAppend(&out, character);
      text.remove_prefix(character.size());
    } else {
      absl::StrAppendFormat(&out, "\\x%02x", Byte(text.front()));
      text.remove_prefix(1);
    }
  }
  return out;
}

std::string CutMiddle(const std::string& text, std::size_t limit) {
  if (text.size() <= limit) return text;
  constexpr absl::string_view kDots = "...";
  std::size_t head = (limit - kDots.size()) / 2;
  std::size_t tail = text.size() - (limit - kDots.size() - head);
  while (head > 0 && InsideCharacter(text[head])) --head;
  while (tail < text.size() && InsideCharacter(text[tail])) ++tail;
  return absl::StrCat(text.substr(0, head), kDots, text.substr(tail));
}

}  // namespace optimus::tools
