#pragma once
// What nearly every source includes and the compiler reads for a second each time: read once, where
// the build system asks for it (CMAKE_DISABLE_PRECOMPILE_HEADERS=ON: not at all). Sources include
// what they use all the same: tools/check_includes.sh knows the names of what is included here.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
