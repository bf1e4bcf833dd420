#include "tools/resources.h"

#include <sys/resource.h>

#include <algorithm>

namespace optimus::tools {

double PeakMemoryMib() {
  rusage self{}, children{};
  getrusage(RUSAGE_SELF, &self);
  getrusage(RUSAGE_CHILDREN, &children);
  return static_cast<double>(std::max(self.ru_maxrss, children.ru_maxrss)) / 1024.0;
}

}  // namespace optimus::tools
