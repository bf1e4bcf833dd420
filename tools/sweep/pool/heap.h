#pragma once
// The heap of a process that lives for one job.

namespace optimus::sweep {

// A short job spends much of its time on page faults: memory that it frees goes back to the system
// and is fetched anew, 4 KiB at a time. After this, what is freed is kept, and the first 64 MiB
// come in large pages. Changes no result; where the system cannot do it, nothing happens. Call
// once, in a process of one thread.
void PrepareHeap();

}  // namespace optimus::sweep
