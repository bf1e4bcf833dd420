#include "schedule/ir/schedule.h"

#include <algorithm>

namespace optimus::ir {

bool operator==(const Program& a, const Program& b) {
  if (a.stage != b.stage || a.lane != b.lane) return false;
  return std::equal(a.operations.begin(), a.operations.end(), b.operations.begin(),
                    b.operations.end(), [&](const Operation& x, const Operation& y) {
                      Operation moved = y;
                      moved.first_dependency = x.first_dependency;
                      return x == moved && a.DependenciesOf(x) == b.DependenciesOf(y);
                    });
}

}  // namespace optimus::ir
