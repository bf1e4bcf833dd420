#pragma once
// Causes in words, for explain's text and JSON.

#include <string>

#include "tools/explain_report.h"

namespace optimus::tools {

// "fc1 fwd L3 mb5", printable and not too long.
std::string OpName(const traces::ReplayGraph& graph, traces::TaskId task);
// "compute", "dp all_gather", "launch gap", "before the rank's step began", ...
std::string ClassName(const traces::OpClasses& classes, std::int32_t cls, traces::PieceKind kind);
// What leads from the piece before to this one: "after the operation before it on its stream".
const char* ReasonText(traces::BoundBy reason);
// The same for machines: "lane", "dependency", "launch", ...
const char* ReasonName(traces::BoundBy reason);
// "rank 8 computes 12.3 ms (fc1 fwd L3 mb5, ...)" of a gap's share; `rank`: whose gap it is.
std::string ShareText(const ExplainReport& report, const traces::Share& share, std::int32_t rank);

}  // namespace optimus::tools
