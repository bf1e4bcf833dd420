#include "schedule/colocate/stage_work_builder.h"

#include <algorithm>
#include <utility>

#include "schedule/ir/critical_path.h"

namespace optimus::colocate {
namespace {

bubble::Resource ResourceOf(const step::LoweredOp& op) {
  return op.kind == ir::OperationKind::kKernel ? bubble::Resource::kCompute
                                               : bubble::Resource::kLink;
}

}  // namespace

PricedBlock PriceBlock(const models::Block& block, const ir::Group& group, const CostModel& costs,
                       ir::Schedule& tables) {
  PricedBlock priced;
  priced.block = step::Lower(block, tables, group);
  const GroupShape shape = ir::ShapeOf(tables, group);
  for (const models::BlockOp& op : block.ops) {
    priced.durations.push_back(
        op.is_collective ? UncontendedTime(costs, costs.CollectiveCost(op.collective, shape))
                         : costs.KernelTime(op.kernel));
  }
  return priced;
}

StageWorkBuilder::StageWorkBuilder(int slices, bool by_slice)
    : slices_(slices), by_slice_(by_slice), outputs_(by_slice ? slices : 1, -1) {}

void StageWorkBuilder::SetInputParts(int parts) {
  input_parts_ = parts;
  work_.input_parts = std::max(parts, 1);
}

std::int16_t StageWorkBuilder::InputPart(int slice) const {
  if (input_parts_ == 0) return -1;
  return static_cast<std::int16_t>(input_parts_ == 1 ? 0 : slice);
}

void StageWorkBuilder::Append(const PricedBlock& block, std::int16_t layer, int slice) {
  std::int64_t& output = outputs_[by_slice_ ? slice : 0];
  Place place = {layer, static_cast<std::int16_t>(slice), by_slice_ ? slice : 0, -1};
  std::vector<std::uint32_t> before;
  if (output >= 0) {
    before.push_back(static_cast<std::uint32_t>(output));
  } else {
    place.input_part = InputPart(slice);
  }
  output = std::max(output, AppendBlock(block, place, before));
  joined_ = false;
}

void StageWorkBuilder::AppendForAll(const PricedBlock& block, std::int16_t layer) {
  Place place = {layer, -1, by_slice_ ? slices_ : 0, -1};
  std::vector<std::uint32_t> before;
  for (const std::int64_t output : outputs_) {
    if (output >= 0) before.push_back(static_cast<std::uint32_t>(output));
  }
  // A stage whose first block this is: its input comes in one part.
  if (before.empty()) place.input_part = InputPart(0);
  const std::int64_t end = AppendBlock(block, place, before);
  if (end < 0) return;
  std::fill(outputs_.begin(), outputs_.end(), end);
  joined_ = true;
}

std::int64_t StageWorkBuilder::AppendBlock(const PricedBlock& block, const Place& place,
                                           const std::vector<std::uint32_t>& before) {
  if (block.block.output < 0) return -1;
  const auto begin = static_cast<std::uint32_t>(work_.ops.size());
  bool started[2] = {false, false};
  for (std::size_t i = 0; i < block.block.ops.size(); ++i) {
    const step::LoweredOp& op = block.block.ops[i];
    bool& resource_started = started[static_cast<int>(ResourceOf(op))];
    const bool waits = !resource_started || op.needs_input;
    resource_started = true;
    AppendOp(op, block.durations[i], place, waits ? &before : nullptr, begin);
  }
  return begin + block.block.output;
}

void StageWorkBuilder::AppendOp(const step::LoweredOp& op, Picoseconds duration, const Place& place,
                                const std::vector<std::uint32_t>* before,
                                std::uint32_t block_begin) {
  bubble::WorkOp out;
  out.resource = ResourceOf(op);
  out.duration = duration;
  out.work = op.work;
  out.phase = op.phase;
  out.layer = place.layer;
  out.slice = place.slice;
  out.first_dependency = static_cast<std::uint32_t>(work_.dependencies.size());
  const auto add = [&](std::uint32_t id) {
    // Within a chain the ops of one resource are in order anyway.
    if (work_.chain[id] == place.chain && work_.ops[id].resource == out.resource) return;
    work_.dependencies.push_back(id);
  };
  if (before != nullptr) {
    out.input_part = place.input_part;
    for (const std::uint32_t id : *before) add(id);
  }
  for (const int id : op.after) add(block_begin + static_cast<std::uint32_t>(id));
  out.dependency_count =
      static_cast<std::uint32_t>(work_.dependencies.size()) - out.first_dependency;
  (out.resource == bubble::Resource::kCompute ? work_.compute : work_.link) += duration;
  work_.ops.push_back(out);
  work_.chain.push_back(place.chain);
}

bubble::StageWork StageWorkBuilder::Finish() && {
  if (joined_) outputs_.resize(1);
  for (const std::int64_t output : outputs_) {
    if (output >= 0) work_.outputs.push_back(static_cast<std::uint32_t>(output));
  }
  return std::move(work_);
}

}  // namespace optimus::colocate
