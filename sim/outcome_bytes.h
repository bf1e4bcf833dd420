#pragma once
// An Outcome as bytes for the pipe between a child process and its parent: the same program on both
// sides, so plain memory. Not a file format; that is schedule/ir/serialize.h.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sim/outcome.h"

namespace optimus::sim {

std::string ToBytes(const Outcome& outcome);
// DATA_LOSS if the bytes are cut or too long.
absl::StatusOr<Outcome> FromBytes(absl::string_view bytes);

}  // namespace optimus::sim
