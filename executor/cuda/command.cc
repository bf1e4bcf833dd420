#include "executor/cuda/command.h"

#include <algorithm>

namespace optimus::executor::cuda {

bool SameWork(const std::vector<Command>& a, const std::vector<Command>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Command& x, const Command& y) {
    return x.kind == y.kind && x.stream == y.stream && x.event == y.event &&
           x.signature == y.signature;
  });
}

}  // namespace optimus::executor::cuda
