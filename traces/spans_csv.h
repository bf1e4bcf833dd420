#pragma once
// The operations of a Recording as comma-separated values (RFC 4180): a header line, then one line
// an operation, by rank and in order of issue. Times are microseconds from the rank's clock origin,
// exact to the picosecond; a cell is empty where the trace does not say.

#include <string>

#include "traces/recording/recording.h"

namespace optimus::traces {

// Columns, in this order: rank, stands_for (GPUs), lane, op (number in its rank), name, kind,
// communication, group, group_size, peer (rank), bytes (of a communication, or HBM traffic), flops,
// start_us, end_us, duration_us, dependencies (how many).
//
// Control characters in texts, line ends too, become blanks, so that every line is one operation.
std::string WriteCsv(const Recording& recording);

}  // namespace optimus::traces
