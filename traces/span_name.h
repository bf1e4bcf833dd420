#pragma once
// How an operation is named and labelled in a trace.

#include <string>

#include "schedule/ir/schedule.h"

namespace optimus::traces {

// "fc1 fwd L3 mb5", "attention bwd enc L11 mb0 s2", "activations fwd c2 mb5 to stage 4", "features
// fwd enc mb5 to stage 0 lane 1". "enc" marks an encoder's work ("enc1", "enc2" where there are
// several encoders), s a slice, c a model chunk.
std::string SpanName(const ir::Schedule& schedule, const ir::Operation& operation);

// The same without micro-batch, slice and peer: "fc1 fwd L3", "activations fwd c2".
std::string OperationName(const ir::Schedule& schedule, const ir::Operation& operation);

// What the operation is: "gemm", "memory_bound", "all_gather", "send", ...
std::string SpanCategory(const ir::Schedule& schedule, const ir::Operation& operation);

// "compute", "tensor parallel", "forward send", ...: the name of a stream's track.
const char* TrackName(ir::Stream stream);

// Tracks of one rank from top to bottom: compute (0), then what it waits for most often.
int TrackOrder(ir::Stream stream);

}  // namespace optimus::traces
