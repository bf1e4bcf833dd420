#include "schedule/step/program_builder.h"

namespace optimus::step {

std::uint32_t ProgramBuilder::Append(ir::Operation operation,
                                     absl::Span<const std::uint32_t> dependencies) {
  const auto id = static_cast<std::uint32_t>(program_.operations.size());
  operation.first_dependency = static_cast<std::uint32_t>(program_.dependencies.size());
  operation.dependency_count = static_cast<std::uint32_t>(dependencies.size());
  program_.dependencies.insert(program_.dependencies.end(), dependencies.begin(),
                               dependencies.end());
  if (operation.stream == ir::Stream::kCompute) last_compute_ = id;
  program_.operations.push_back(operation);
  return id;
}

}  // namespace optimus::step
