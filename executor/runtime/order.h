#pragma once
// In which order a program is enqueued, and what each operation has to wait for.

#include <cstdint>
#include <vector>

#include "schedule/ir/schedule.h"

namespace optimus::executor {

// Ids of all operations, each after its dependencies and after those before it on its stream; else
// by id. (A dependency may be issued later, on another stream; but a GPU stream cannot wait for an
// event that nothing has been asked to record yet.) The Schedule must be valid.
std::vector<std::uint32_t> EnqueueOrder(const ir::Program& program);

// By operation: those of other streams whose end it has to wait for, ascending. Left out: what has
// ended anyway when an earlier operation of its stream, or another one waited for, has.
std::vector<std::vector<std::uint32_t>> NeededWaits(const ir::Program& program,
                                                    const std::vector<std::uint32_t>& order);

}  // namespace optimus::executor
