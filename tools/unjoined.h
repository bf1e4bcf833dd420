#pragma once
// What ranks do about each other before they can talk, and when they cannot any more. They see
// those of their node in /proc, and no more.

#include "absl/time/time.h"
#include "executor/watch/guard.h"

namespace optimus::tools {

// Whether this rank has to print an error that it found before it joined the others. One that is
// started with the same arguments as a lower rank of its node leaves it to that one, and waits some
// time to be ended by the launcher: what ends first could get the other one killed.
bool IsMineToSay();
// This rank has said why the run ends: the others of its node, which the launcher may end now, have
// nothing to say.
void TellOthersThatAllIsSaid();

// From the start until all have joined. An error when this rank is asked to stop; when `timeout`
// has passed and a rank of the node will not come (it is stopped, has ended, or is another
// program); and whatever is known, when the longer of `timeout` and half a minute has passed. With
// `known_limit`, joining itself has a limit, and reads SIGTERM.
executor::Guard::Duty WhileJoining(absl::Duration timeout, bool known_limit);
// From the end of the run to the end of the process: the launcher's library may wait for all ranks.
executor::Guard::Duty WhileLeaving(absl::Duration timeout);
// All is said and the process ends all ranks: whatever happens now, there is nothing to say.
executor::Guard::Duty WhileEnding();

}  // namespace optimus::tools
