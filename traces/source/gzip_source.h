#pragma once
// Unpacks gzip while it is read.

#include <memory>

#include "absl/status/statusor.h"
#include "traces/source/byte_source.h"

namespace optimus::traces {

// The content of gzip members, one after another. DATA_LOSS where they are damaged or cut off.
absl::StatusOr<std::unique_ptr<ByteSource>> MakeGzipSource(std::unique_ptr<ByteSource> packed);

}  // namespace optimus::traces
