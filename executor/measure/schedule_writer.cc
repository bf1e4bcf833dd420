#include "executor/measure/schedule_writer.h"

#include <utility>

namespace optimus::executor {

using ir::OperationKind;
using ir::Stream;

ScheduleWriter::ScheduleWriter(const std::string& name, ir::Parallelism world, int ranks_per_node) {
  schedule_.name = name;
  schedule_.world = world;
  schedule_.gpus_per_node = ranks_per_node;
  schedule_.programs.resize(static_cast<std::size_t>(world.pp));
  for (std::int32_t stage = 0; stage < world.pp; ++stage) schedule_.programs[stage].stage = stage;
  Kernel moment;
  moment.name = "moment";
  AddWork(moment);
}

std::int32_t ScheduleWriter::AddWork(const Kernel& kernel) {
  schedule_.kernels.push_back(kernel);
  return static_cast<std::int32_t>(schedule_.kernels.size()) - 1;
}

std::int32_t ScheduleWriter::AddWork(const CollectiveWork& work, std::int32_t group) {
  schedule_.collectives.push_back({work, group});
  return static_cast<std::int32_t>(schedule_.collectives.size()) - 1;
}

std::int32_t ScheduleWriter::AddTransfer(Bytes bytes) {
  schedule_.transfers.push_back({"message", bytes, Picoseconds(0)});
  return static_cast<std::int32_t>(schedule_.transfers.size()) - 1;
}

std::int32_t ScheduleWriter::AddGroup(const ir::Group& group) {
  schedule_.groups.push_back(group);
  return static_cast<std::int32_t>(schedule_.groups.size()) - 1;
}

std::uint32_t ScheduleWriter::AddKernel(int stage, std::int32_t work, const Ids& after) {
  ir::Operation op;
  op.work = work;
  return Add(stage, op, after);
}

std::uint32_t ScheduleWriter::AddCollective(int stage, std::int32_t work, const Ids& after) {
  ir::Operation op;
  op.kind = OperationKind::kCollective;
  op.stream = Stream::kTensorParallel;
  op.work = work;
  return Add(stage, op, after);
}

std::uint32_t ScheduleWriter::AddSend(int stage, int peer, std::int32_t message,
                                      std::int32_t transfer, bool backward, const Ids& after) {
  ir::Operation op;
  op.kind = OperationKind::kSend;
  op.stream = backward ? Stream::kBackwardSend : Stream::kForwardSend;
  op.work = transfer;
  op.peer_stage = peer;
  op.message = message;
  return Add(stage, op, after);
}

std::uint32_t ScheduleWriter::AddReceive(int stage, int peer, std::int32_t message,
                                         std::int32_t transfer, bool backward) {
  ir::Operation op;
  op.kind = OperationKind::kReceive;
  op.stream = backward ? Stream::kBackwardReceive : Stream::kForwardReceive;
  op.work = transfer;
  op.peer_stage = peer;
  op.message = message;
  return Add(stage, op, {});
}

std::uint32_t ScheduleWriter::Add(int stage, ir::Operation op, const Ids& after) {
  ir::Program& program = schedule_.programs[stage];
  op.tag.micro_batch = repetition_;
  op.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
  op.dependency_count = static_cast<std::uint32_t>(after.size());
  program.dependencies.insert(program.dependencies.end(), after.begin(), after.end());
  program.operations.push_back(op);
  return static_cast<std::uint32_t>(program.operations.size()) - 1;
}

}  // namespace optimus::executor
