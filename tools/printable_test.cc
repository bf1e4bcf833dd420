#include "tools/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace optimus::tools {
namespace {

TEST(PrintableTest, TextStays) {
  for (const char* text : {"", "a b/c-1.0", "größe", "模型", "\xf0\x9f\x90\x98", "back\\slash"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(PrintableTest, ControlCharactersAreEscaped) {
  EXPECT_EQ(Printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Printable("\x1b[31mred\n\t\x7f"), "\\x1b[31mred\\x0a\\x09\\x7f");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");                    // C1: an escape sequence in two bytes
  EXPECT_EQ(Printable("\xc2\xa0"), "\xc2\xa0");  // right behind C1: a space that does not break
}

TEST(PrintableTest, InvalidUtf8IsEscapedByteByByte) {
  EXPECT_EQ(Printable("a\xff"), "a\\xff");
  EXPECT_EQ(Printable("\xe6\xa8"), "\\xe6\\xa8");           // cut short
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(Printable("\xc3z"), "\\xc3z");
}

TEST(CutMiddleTest, KeepsBothEndsAndWholeCharacters) {
  EXPECT_EQ(CutMiddle("0123456789", 10), "0123456789");
  EXPECT_EQ(CutMiddle("0123456789a", 10), "012...789a");
  std::string text;
  for (int i = 0; i < 20; ++i) text += "é";
  for (std::size_t limit = 8; limit < 20; ++limit) {
    const std::string cut = CutMiddle(text, limit);
    EXPECT_LE(cut.size(), limit);
    EXPECT_GE(cut.size() + 2, limit);
    EXPECT_EQ(Printable(cut), cut);  // valid
  }
}

}  // namespace
}  // namespace optimus::tools
