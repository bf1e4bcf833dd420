#pragma once
// What optimus sweep show prints for people.

#include <string>

#include "tools/sweep/show/answer.h"

namespace optimus::tools {

std::string SweepShowText(const sweep::Answer& answer);

}  // namespace optimus::tools
