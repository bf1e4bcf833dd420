#pragma once
// Whether an emulated run kept its time: where many ranks share few cores they are late, and then
// neither the step nor what it is made of says anything.

#include <string>

#include "executor/runtime/run.h"
#include "schedule/ir/timeline.h"

namespace optimus::tools {

// Of one step. Times are those of the report: divided by the time scale.
struct Emulation {
  double time_scale = 1;
  double step_s = 0, measured_step_s = 0;  // what the step should have taken, and what it took
  double late_s = 0;  // most that an operation of any rank ended after its time
  // Means over GPUs, the optimizer included: what computing should have taken, and what it took.
  double compute_s = 0, measured_compute_s = 0;

  // An operation ends when it should, so one that begins late is shorter by that.
  double short_s() const;
  // Neither is above 2 % of what the step should have been.
  bool kept_time() const;
  // One at which it can be expected to keep its time: 1, 2 or 5 times a power of ten.
  double better_time_scale() const;
};

// Of the step whose timeline this is, already divided by the time scale.
Emulation EmulationOf(const executor::Lateness& lateness, const ir::Timeline& timeline,
                      double time_scale);

// "emulated operations ended up to 110.1 ms after their time ...: give --time-scale=20".
std::string LateText(const Emulation& emulation);

}  // namespace optimus::tools
