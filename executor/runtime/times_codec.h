#pragma once
// Measured times of one rank's step as bytes, few per operation: differences, as varints. Thousands
// of operations of thousands of ranks are gathered at rank 0.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/runtime/runtime.h"

namespace optimus::executor {

std::string EncodeTimes(const std::vector<OperationTime>& times);

// DATA_LOSS where `bytes` do not hold the times of exactly `count` operations.
absl::StatusOr<std::vector<OperationTime>> DecodeTimes(const std::string& bytes, std::size_t count);

}  // namespace optimus::executor
