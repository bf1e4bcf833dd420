#pragma once
// SIGTERM as something to be read, instead of the end of the process without a word.

#include <csignal>
#include <cstdint>

namespace optimus::executor {

// Called first thing in a process that may be a rank, before any thread: SIGTERM from a launcher is
// to be read by the watchdog, not to end us unheard.
void HoldTerminationSignals();
// True if one has come since the last call.
bool TakeTerminationSignal();

// For the thread that waits for signals on behalf of the others: one that it has read is for
// whoever calls TakeTerminationSignal.
void NoteTerminationSignal();
// One was noted, and nobody has taken it.
bool HasTerminationSignal();
sigset_t TerminationSignals();

// To a process of the same launcher: the sender has said why the run ends, so there is nothing more
// to say. It is a SIGTERM with a mark, for processes that hold it back.
void TellThatAllIsSaid(std::int32_t pid);
bool SaysThatAllIsSaid(const siginfo_t& signal);

}  // namespace optimus::executor
