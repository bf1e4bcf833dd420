#pragma once
// Writing to a file descriptor until all is out.

#include "absl/strings/string_view.h"

namespace optimus {

// False, with errno, where that cannot be. Callable after fork: it allocates nothing.
bool WriteAll(int file, absl::string_view bytes);

}  // namespace optimus
