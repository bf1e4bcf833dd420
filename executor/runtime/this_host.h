#pragma once
// This host's name and clock.

#include <cstdint>
#include <string>

namespace optimus::executor {

// "localhost" where it has none.
std::string HostName();

// CLOCK_MONOTONIC, nanoseconds.
std::int64_t NowNs();

}  // namespace optimus::executor
