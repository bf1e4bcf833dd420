#include "executor/numerics/supported.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::executor::numerics {
namespace {

absl::Status Unsupported(const std::string& what) {
  return absl::UnimplementedError(
      absl::StrCat("numerics: ", what,
                   ", which real data cannot follow yet; use GPIPE, ONE_F_ONE_B or INTERLEAVED, or "
                   "run without --numerics"));
}

// The first weight gradient of a layer behind the whole backward of it.
std::optional<std::uint32_t> WeightGradientApart(const ir::Program& program) {
  // By (module, layer, slice, micro-batch): the last operation of its backward.
  absl::flat_hash_map<std::tuple<std::int16_t, std::int16_t, std::int16_t, std::int32_t>,
                      std::uint32_t>
      last;
  const auto key = [](const ir::Tag& tag) {
    return std::make_tuple(tag.module, tag.layer, tag.slice, tag.micro_batch);
  };
  for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
    const ir::Tag& tag = program.operations[id].tag;
    if (tag.layer >= 0 && tag.phase == Phase::kBackward) last[key(tag)] = id;
  }
  for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
    const ir::Tag& tag = program.operations[id].tag;
    if (tag.layer < 0 || tag.phase != Phase::kWeightGradient) continue;
    const auto found = last.find(key(tag));
    if (found != last.end() && found->second < id) return id;
  }
  return std::nullopt;
}

std::int16_t LastChunk(const ir::Program& program) {
  std::int16_t last = 0;
  for (const ir::Operation& op : program.operations) last = std::max(last, op.tag.chunk);
  return last;
}

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

// Forward messages go to the next stage, from the last one to the first; the last chunk of the last
// stage ends the model.
absl::Status CheckLoop(const ir::Schedule& schedule, const ir::Program& program) {
  const bool last_stage = program.stage == schedule.world.pp - 1;
  const std::int16_t last_chunk = LastChunk(program);
  for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
    const ir::Operation& op = program.operations[id];
    if (op.stream != ir::Stream::kForwardSend) continue;
    const bool next = op.peer_stage == (program.stage + 1) % schedule.world.pp;
    if (next && !(last_stage && op.tag.chunk == last_chunk)) continue;
    return Unsupported(absl::StrCat("stage ", program.stage, ", operation ", id, " (",
                                    ir::Describe(schedule, program, id),
                                    ") is of a pipeline that does not go down the stages"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSupported(const ir::Schedule& schedule) {
  for (const ir::ModuleInfo& module : schedule.modules) {
    if (!module.both_directions) continue;
    return Unsupported(absl::StrCat("module '", module.name, "' goes in both directions"));
  }
  for (const ir::Program& program : schedule.programs) {
    if (const auto apart = WeightGradientApart(program); apart.has_value()) {
      return Unsupported(absl::StrCat("stage ", program.stage, ", operation ", *apart, " (",
                                      ir::Describe(schedule, program, *apart),
                                      ") runs apart from the data gradients of its layer"));
    }
    OPTIMUS_RETURN_IF_ERROR(CheckLoop(schedule, program));
    OPTIMUS_RETURN_IF_ERROR(CheckNoBuckets(schedule, program));
  }
  return absl::OkStatus();
}

}  // namespace optimus::executor::numerics
