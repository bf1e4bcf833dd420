#pragma once
// What a row says was measured, beside what the simulator says.

#include <string>
#include <vector>

namespace optimus::validation {

struct Figure {
  std::string quantity;  // "step", "forward", "bubble_zb_h1"
  std::string unit;      // of measured and simulated: "s", "ms", "GiB", "share"
  std::string group;     // figures that a target or a ranking takes together: "39.1B"; may be ""
  double measured = 0, simulated = 0;
  // A share of the step is compared by its difference, everything else by its ratio.
  double error() const { return unit == "share" ? simulated - measured : simulated / measured - 1; }
};

struct RowResult {
  std::vector<Figure> figures;
  std::string note;  // what was found on the way: the micro-batch size that a search took
};

}  // namespace optimus::validation
