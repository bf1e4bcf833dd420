#pragma once
// Says why a walk stopped early: who waits for what.

#include <string>

#include "schedule/ir/walk.h"

namespace optimus::ir {

// "stage 1", or where there are several lanes "stage 1 lane 0".
std::string NameProgram(const Schedule& schedule, std::int32_t program);

// "stage 1 (rank 8), operation 12 (llm layer 3 ... fc1)".
std::string NameOperation(const Schedule& schedule, OperationRef ref);

// One line. The chain of waits from the first blocked stream to where it closes: "deadlock: stage 0
// (rank 0), operation 4 (...) waits for operation 7 (...) of stage 1; stage 1 (rank 8), operation 6
// ... ", "dependency cycle: ..." where all waits are dependencies inside one program, "starved:
// ..." where it ends at something that nobody issues. `walk` must be incomplete, after Run.
std::string ExplainBlocked(const Schedule& schedule, const Walk& walk);

}  // namespace optimus::ir
