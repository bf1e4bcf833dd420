#pragma once
// What watchdogs write to each other by World::Post.

#include <optional>
#include <string>

namespace optimus::executor {

enum class NoteKind {
  kHang,       // to rank 0: `text` (nothing moves, somebody is stopped); say so for all
  kReporting,  // rank 0's answer: it does
  kAsk,        // what is `rank` at? To that rank, or to another one of its node
  kAnswer,     // `text` is what `rank` is at
  kEnding,     // to rank 0: the run ends, and the sender has said why
  kAsked,      // to rank 0: all ranks of the sender's node have got SIGTERM
};

struct WatchNote {
  NoteKind kind = NoteKind::kHang;
  int rank = 0;
  std::string text = {};  // kHang, kAnswer
};

std::string Format(const WatchNote& note);
// Nothing: it is no note of a watchdog.
std::optional<WatchNote> ParseNote(const std::string& text);

}  // namespace optimus::executor
