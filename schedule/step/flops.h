#pragma once
// FLOPs of a step: what the model needs (MFU) and what the kernels do (HFU).

#include <cstdint>

#include "base/units.h"
#include "schedule/ir/schedule.h"
#include "schedule/step/stack.h"

namespace optimus::step {

// Of one module on `micro_batches` micro-batches, of all replicas together. Forward, data gradient
// and weight gradient take the same: a frozen module does one of three.
Flops ModuleFlops(const Module& module, std::int64_t micro_batches);

// Of all kernels of the schedule, on all GPUs.
Flops HardwareFlops(const ir::Schedule& schedule);

}  // namespace optimus::step
