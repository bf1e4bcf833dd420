#include "executor/numerics/supported.h"

#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::executor::numerics {
namespace {

// Which parameters are in a bucket is not said by its collective.
absl::Status CheckNoBuckets(const ir::Schedule& schedule, const ir::Program& program) {
  std::set<std::pair<Phase, std::int16_t>> seen;  // by chunk
  for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
    const ir::Operation& op = program.operations[id];
    if (op.stream != ir::Stream::kDataParallel || op.tag.module >= 0 || op.tag.chunk < 0) continue;
    if (seen.emplace(op.tag.phase, op.tag.chunk).second) continue;
    return absl::UnimplementedError(
        absl::StrCat("numerics: stage ", program.stage, ", operation ", id, " (",
                     ir::Describe(schedule, program, id),
                     ") is one of several buckets of a chunk, which real data cannot follow yet; "
                     "remove plan.dp_bucket_parameters, or run without --numerics"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSupported(const ir::Schedule& schedule) {
  for (const ir::Program& program : schedule.programs) {
    OPTIMUS_RETURN_IF_ERROR(CheckNoBuckets(schedule, program));
  }
  return absl::OkStatus();
}

}  // namespace optimus::executor::numerics
