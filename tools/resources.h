#pragma once
// What a command has used so far.

namespace optimus::tools {

// Highest resident memory so far, of this process or of a child that it ran.
double PeakMemoryMib();

}  // namespace optimus::tools
