#pragma once
// The packets of a Perfetto trace that say which processes and tracks there are, in the order in
// which they are to be drawn. Processes and tracks share one count of ids, from 1; the first track
// of a process has the process's id (its main thread, which viewers put first).

#include <cstdint>
#include <string>

namespace optimus::traces {

// That ids and orders are to be kept as they are given. Once a trace.
void DescribeRoot(std::string& trace);

// `order`: of the process among the others, from 0.
void DescribeProcess(std::int32_t id, std::int32_t order, const std::string& name,
                     std::string& trace);

// A thread of `process`. Returns its id as sequence and track of a TrackWriter.
std::uint32_t DescribeTrack(std::int32_t id, std::int32_t process, const std::string& name,
                            std::string& trace);

}  // namespace optimus::traces
