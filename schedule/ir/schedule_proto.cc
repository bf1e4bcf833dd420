// Schedule to and from its proto.

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/ir/serialize.h"

namespace optimus::ir {
namespace {

// Enums on the wire are the ones in memory plus one: zero means that it was left out.
template <class Wire, class Enum>
Wire ToWire(Enum value) {
  return static_cast<Wire>(static_cast<int>(value) + 1);
}

template <class Enum, class Wire>
absl::StatusOr<Enum> FromWire(Wire value, Wire last, const std::string& field) {
  if (value == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": is missing or unspecified (0); hint: name one of 1 to ",
                     static_cast<int>(last), " of schedule.proto"));
  }
  if (value < 0 || value > last) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": unknown value ",
                                                   static_cast<int>(value),
                                                   "; hint: the file is from another version"));
  }
  return static_cast<Enum>(static_cast<int>(value) - 1);
}

proto::Kernel ToProto(const Kernel& kernel) {
  proto::Kernel out;
  out.set_kind(ToWire<proto::Kernel::Kind>(kernel.kind));
  out.set_name(kernel.name);
  if (kernel.gemm != GemmShape{}) {
    out.mutable_gemm()->set_m(kernel.gemm.m);
    out.mutable_gemm()->set_n(kernel.gemm.n);
    out.mutable_gemm()->set_k(kernel.gemm.k);
  }
  if (const AttentionShape& shape = kernel.attention; shape != AttentionShape{}) {
    proto::AttentionShape& attention = *out.mutable_attention();
    attention.set_sequences(shape.sequences);
    attention.set_heads(shape.heads);
    attention.set_kv_heads(shape.kv_heads);
    attention.set_sequence_length(shape.sequence_length);
    attention.set_head_dim(shape.head_dim);
    attention.set_causal(shape.causal);
    attention.set_backward(shape.backward);
  }
  out.set_flops(kernel.flops.value());
  out.set_hbm_bytes(kernel.bytes.value());
  out.set_fixed_ps(kernel.fixed.value());
  return out;
}

absl::StatusOr<Kernel> FromProto(const proto::Kernel& message, const std::string& where) {
  Kernel kernel;
  OPTIMUS_ASSIGN_OR_RETURN(
      kernel.kind, FromWire<KernelKind>(message.kind(), proto::Kernel::FIXED, where + ".kind"));
  kernel.name = message.name();
  kernel.gemm = {message.gemm().m(), message.gemm().n(), message.gemm().k()};
  const proto::AttentionShape& a = message.attention();
  kernel.attention = {a.sequences(), a.heads(),  a.kv_heads(), a.sequence_length(),
                      a.head_dim(),  a.causal(), a.backward()};
  kernel.flops = Flops(message.flops());
  kernel.bytes = Bytes(message.hbm_bytes());
  kernel.fixed = Picoseconds(message.fixed_ps());
  return kernel;
}

absl::StatusOr<Collective> FromProto(const proto::Collective& message, const std::string& where) {
  Collective collective;
  OPTIMUS_ASSIGN_OR_RETURN(
      collective.work.kind,
      FromWire<CollectiveKind>(message.kind(), proto::Collective::ALL_TO_ALL, where + ".kind"));
  collective.work.name = message.name();
  collective.work.bytes = Bytes(message.bytes());
  collective.group = message.group();
  return collective;
}

void ToProto(const Tag& tag, proto::Tag& out) {
  out.set_phase(ToWire<proto::Tag::Phase>(tag.phase));
  if (tag.module != -1) out.set_module(tag.module);
  if (tag.layer != -1) out.set_layer(tag.layer);
  if (tag.chunk != -1) out.set_chunk(tag.chunk);
  if (tag.slice != -1) out.set_slice(tag.slice);
  if (tag.micro_batch != -1) out.set_micro_batch(tag.micro_batch);
}

absl::StatusOr<std::int16_t> Narrow(bool given, std::int32_t value, const std::string& where,
                                    const char* field) {
  if (!given) return static_cast<std::int16_t>(-1);
  using Limits = std::numeric_limits<std::int16_t>;
  if (value < Limits::min() || value > Limits::max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ".tag.", field, ": ", value, " is out of range; hint: at most ", Limits::max()));
  }
  return static_cast<std::int16_t>(value);
}

absl::StatusOr<Tag> FromProto(const proto::Tag& message, const std::string& where) {
  Tag tag;
  OPTIMUS_ASSIGN_OR_RETURN(
      tag.phase, FromWire<Phase>(message.phase(), proto::Tag::OPTIMIZER, where + ".tag.phase"));
  OPTIMUS_ASSIGN_OR_RETURN(tag.module,
                           Narrow(message.has_module(), message.module(), where, "module"));
  OPTIMUS_ASSIGN_OR_RETURN(tag.layer, Narrow(message.has_layer(), message.layer(), where, "layer"));
  OPTIMUS_ASSIGN_OR_RETURN(tag.chunk, Narrow(message.has_chunk(), message.chunk(), where, "chunk"));
  OPTIMUS_ASSIGN_OR_RETURN(tag.slice, Narrow(message.has_slice(), message.slice(), where, "slice"));
  if (message.has_micro_batch()) tag.micro_batch = message.micro_batch();
  return tag;
}

void ToProto(const Program& program, const Operation& op, proto::Operation& out) {
  out.set_kind(ToWire<proto::Operation::Kind>(op.kind));
  out.set_stream(ToWire<proto::Operation::Stream>(op.stream));
  ToProto(op.tag, *out.mutable_tag());
  if (op.work != -1) out.set_work(op.work);
  if (op.peer_stage != -1) out.set_peer_stage(op.peer_stage);
  if (op.peer_lane != -1) out.set_peer_lane(op.peer_lane);
  if (op.message != -1) out.set_message(op.message);
  const auto dependencies = program.DependenciesOf(op);
  out.mutable_dependencies()->Add(dependencies.begin(), dependencies.end());
}

absl::Status AddOperation(const proto::Operation& message, const std::string& where,
                          Program& program) {
  Operation op;
  OPTIMUS_ASSIGN_OR_RETURN(
      op.kind, FromWire<OperationKind>(message.kind(), proto::Operation::RECEIVE, where + ".kind"));
  OPTIMUS_ASSIGN_OR_RETURN(
      op.stream,
      FromWire<Stream>(message.stream(), proto::Operation::ENCODER_RECEIVE, where + ".stream"));
  OPTIMUS_ASSIGN_OR_RETURN(op.tag, FromProto(message.tag(), where));
  if (message.has_work()) op.work = message.work();
  if (message.has_peer_stage()) op.peer_stage = message.peer_stage();
  if (message.has_peer_lane()) op.peer_lane = message.peer_lane();
  if (message.has_message()) op.message = message.message();
  op.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
  op.dependency_count = static_cast<std::uint32_t>(message.dependencies_size());
  program.dependencies.insert(program.dependencies.end(), message.dependencies().begin(),
                              message.dependencies().end());
  program.operations.push_back(op);
  return absl::OkStatus();
}

absl::StatusOr<Program> FromProto(const proto::Program& message, int index) {
  Program program;
  program.stage = message.stage();
  program.lane = message.lane();
  program.operations.reserve(message.operations_size());
  for (int i = 0; i < message.operations_size(); ++i) {
    const proto::Operation& op = message.operations(i);
    OPTIMUS_RETURN_IF_ERROR(
        AddOperation(op, absl::StrCat("programs[", index, "].operations[", i, "]"), program));
  }
  return program;
}

void TablesToProto(const Schedule& schedule, proto::Schedule& out) {
  for (const ModuleInfo& module : schedule.modules) {
    proto::Module& m = *out.add_modules();
    m.set_name(module.name);
    m.set_layers(module.layers);
    m.set_frozen(module.frozen);
    m.set_pipelines(module.pipelines);
    m.set_tensor_parallel(module.tensor_parallel);
    m.mutable_skipped_micro_batches()->Add(module.skipped_micro_batches.begin(),
                                           module.skipped_micro_batches.end());
    m.set_both_directions(module.both_directions);
  }
  for (const Kernel& kernel : schedule.kernels) *out.add_kernels() = ToProto(kernel);
  for (const Collective& collective : schedule.collectives) {
    proto::Collective& c = *out.add_collectives();
    c.set_kind(ToWire<proto::Collective::Kind>(collective.work.kind));
    c.set_name(collective.work.name);
    c.set_bytes(collective.work.bytes.value());
    c.set_group(collective.group);
  }
  for (const Transfer& transfer : schedule.transfers) {
    proto::Transfer& t = *out.add_transfers();
    t.set_name(transfer.name);
    t.set_bytes(transfer.bytes.value());
    t.set_fixed_ps(transfer.fixed.value());
  }
  for (const Group& group : schedule.groups) {
    proto::Group& g = *out.add_groups();
    g.set_name(group.name);
    g.set_over_dp(group.over_dp);
    g.set_over_pp(group.over_pp);
    g.set_over_tp(group.over_tp);
    g.set_pp_stride(group.pp_stride);
    g.set_tp_block(group.tp_block);
    g.set_tp_stride(group.tp_stride);
    if (group.paired()) g.mutable_pp_pair()->Add(group.pp_pair.begin(), group.pp_pair.end());
  }
}

absl::Status TablesFromProto(const proto::Schedule& message, Schedule& schedule) {
  for (const proto::Module& m : message.modules()) {
    const auto& skipped = m.skipped_micro_batches();
    schedule.modules.push_back({m.name(),
                                m.layers(),
                                m.frozen(),
                                m.pipelines(),
                                m.tensor_parallel(),
                                {skipped.begin(), skipped.end()},
                                m.both_directions()});
  }
  for (int i = 0; i < message.kernels_size(); ++i) {
    OPTIMUS_ASSIGN_OR_RETURN(Kernel kernel,
                             FromProto(message.kernels(i), absl::StrCat("kernels[", i, "]")));
    schedule.kernels.push_back(std::move(kernel));
  }
  for (int i = 0; i < message.collectives_size(); ++i) {
    OPTIMUS_ASSIGN_OR_RETURN(
        Collective collective,
        FromProto(message.collectives(i), absl::StrCat("collectives[", i, "]")));
    schedule.collectives.push_back(std::move(collective));
  }
  for (const proto::Transfer& t : message.transfers()) {
    schedule.transfers.push_back({t.name(), Bytes(t.bytes()), Picoseconds(t.fixed_ps())});
  }
  for (int i = 0; i < message.groups_size(); ++i) {
    const proto::Group& g = message.groups(i);
    schedule.groups.push_back({g.name(), g.over_dp(), g.over_pp(), g.over_tp(), g.pp_stride(),
                               g.tp_block(), g.tp_stride()});
    if (g.pp_pair_size() == 0) continue;
    if (g.pp_pair_size() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("groups[", i, "].pp_pair: has ", g.pp_pair_size(),
                       " stages; hint: name two, ascending, or leave it out"));
    }
    schedule.groups.back().pp_pair = {g.pp_pair(0), g.pp_pair(1)};
    if (schedule.groups.back().paired()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "groups[", i, "].pp_pair: is stage 0 twice; hint: name two, ascending, or leave it out"));
  }
  return absl::OkStatus();
}

}  // namespace

proto::Schedule ToProto(const Schedule& schedule) {
  proto::Schedule out;
  out.set_version(kScheduleVersion);
  out.set_name(schedule.name);
  out.mutable_world()->set_dp(schedule.world.dp);
  out.mutable_world()->set_pp(schedule.world.pp);
  out.mutable_world()->set_tp(schedule.world.tp);
  out.set_gpus_per_node(schedule.gpus_per_node);
  out.set_micro_batches(schedule.micro_batches);
  // Left out where there is one lane, so that the files without lanes stay the same bytes.
  if (schedule.lanes != 1) out.set_lanes(schedule.lanes);
  TablesToProto(schedule, out);
  for (const Program& program : schedule.programs) {
    proto::Program& p = *out.add_programs();
    p.set_stage(program.stage);
    p.set_lane(program.lane);
    p.mutable_operations()->Reserve(static_cast<int>(program.operations.size()));
    for (const Operation& op : program.operations) ToProto(program, op, *p.add_operations());
  }
  return out;
}

absl::StatusOr<Schedule> FromProto(const proto::Schedule& message) {
  if (message.version() != kScheduleVersion) {
    return absl::InvalidArgumentError(absl::StrCat("version: ", message.version(),
                                                   " is not known; hint: this build reads version ",
                                                   kScheduleVersion, " of schedule.proto"));
  }
  Schedule schedule;
  schedule.name = message.name();
  schedule.world = {message.world().dp(), message.world().pp(), message.world().tp()};
  schedule.gpus_per_node = message.gpus_per_node();
  schedule.micro_batches = message.micro_batches();
  schedule.lanes = message.lanes() == 0 ? 1 : message.lanes();
  OPTIMUS_RETURN_IF_ERROR(TablesFromProto(message, schedule));
  for (int i = 0; i < message.programs_size(); ++i) {
    OPTIMUS_ASSIGN_OR_RETURN(Program program, FromProto(message.programs(i), i));
    schedule.programs.push_back(std::move(program));
  }
  return schedule;
}

}  // namespace optimus::ir
