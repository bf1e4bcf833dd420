#pragma once
// Appends operations to one stage's program.

#include <cstdint>
#include <utility>

#include "absl/types/span.h"
#include "schedule/ir/schedule.h"

namespace optimus::step {

class ProgramBuilder {
 public:
  explicit ProgramBuilder(int stage) { program_.stage = stage; }

  // `dependencies` in the order of accounting; the operation's range is filled in here.
  std::uint32_t Append(ir::Operation operation, absl::Span<const std::uint32_t> dependencies);
  ir::Stream StreamOf(std::uint32_t id) const { return program_.operations[id].stream; }
  // The last operation of the compute stream: everything before it on that stream has ended too.
  std::int64_t last_compute() const { return last_compute_; }
  void Reserve(std::size_t operations) {
    program_.operations.reserve(operations);
    program_.dependencies.reserve(operations);
  }
  ir::Program Take() && { return std::move(program_); }

 private:
  ir::Program program_;
  std::int64_t last_compute_ = -1;
};

}  // namespace optimus::step
