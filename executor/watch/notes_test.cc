#include "executor/watch/notes.h"

#include <gtest/gtest.h>

namespace optimus::executor {
namespace {

TEST(NotesTest, ComeBackAsTheyWere) {
  for (const NoteKind kind : {NoteKind::kHang, NoteKind::kReporting, NoteKind::kAsk,
                              NoteKind::kAnswer, NoteKind::kEnding, NoteKind::kAsked}) {
    const auto note = ParseNote(Format({kind, 12, "two\nlines"}));
    ASSERT_TRUE(note.has_value());
    EXPECT_EQ(note->kind, kind);
    EXPECT_EQ(note->rank, 12);
    EXPECT_EQ(note->text, "two\nlines");
  }
}

TEST(NotesTest, AnythingElseIsNoNote) {
  for (const char* text : {"", "\n", "watch", "watch ask", "watch ask x\n", "watch sing 1\n",
                           "ask 1\n", "watch ask 99999999999\n"}) {
    EXPECT_FALSE(ParseNote(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace optimus::executor
