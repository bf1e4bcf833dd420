#include "tools/text_table.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace optimus::tools {
namespace {

TEST(TextTableTest, AlignsColumnsUnderHeaderAndUnit) {
  TextTable table({{{"stage", ""}, true}, {{"step", "s"}, false}, {{"note", ""}, true}});
  table.AddRow({"0", "1.250", "long"});
  table.AddRow({"average", "10.5", ""});
  EXPECT_EQ(table.Render(),
            "stage     step  note\n"
            "             s\n"
            "-------  -----  ----\n"
            "0        1.250  long\n"
            "average   10.5\n");
}

TEST(TextTableTest, WrapKeepsWordsAndIndents) {
  EXPECT_EQ(Wrap("one two three", 2, 9), "one two\n  three");
  EXPECT_EQ(Wrap("incomprehensibilities is long", 4, 10),
            "incomprehensibilities\n    is\n    long");
  EXPECT_EQ(Wrap("", 4), "");
}

TEST(TextTableTest, WrapStaysWithinTheWidth) {
  const std::string text = Wrap("a bb ccc dddd eeeee ffffff ggggggg hhhhhhhh", 3, 12);
  std::size_t start = 0;
  bool first = true;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    EXPECT_LE(end - start + (first ? 3 : 0), 12U) << text;
    first = false;
    start = end + 1;
  }
}

TEST(TextTableTest, ControlCharactersDoNotBreakTheTable) {
  TextTable table({{{"name"}, true}, {{"n"}, false}});
  table.AddRow({"a\nb\x1b", "1"});
  EXPECT_EQ(table.Render(), "name        n\n----------  -\na\\x0ab\\x1b  1\n");
  EXPECT_EQ(Wrap("a \x1b[0m b", 0), "a \\x1b[0m b");
}

}  // namespace
}  // namespace optimus::tools
