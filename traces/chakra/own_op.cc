#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "traces/chakra/node_facts.h"
#include "traces/chakra/own_attributes.h"
#include "traces/chakra/own_format.h"

namespace optimus::traces::chakra {
namespace {

using ::optimus::chakra::AttributeProto;
using ::optimus::chakra::Node;

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kInt64Min = std::numeric_limits<std::int64_t>::min();

absl::Status AttributeError(const AttributeProto& attribute, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("attribute ", attribute.name(), ": ", what));
}

// A whole number and where it goes.
struct WholeField {
  std::int64_t least = 0, largest = 0;
  void (*set)(OwnOp& op, std::int64_t value) = nullptr;
};

using WholeFieldTable = absl::flat_hash_map<absl::string_view, WholeField>;

void AddCommunicationFields(WholeFieldTable& fields) {
  using Value = std::int64_t;
  constexpr Value kInt32Min = std::numeric_limits<std::int32_t>::min();
  fields["optimus_group"] = {0, kInt32Max, [](OwnOp& op, Value v) {
                               op.communication.group = static_cast<std::int32_t>(v);
                             }};
  fields["optimus_peer"] = {kInt32Min, kInt32Max, [](OwnOp& op, Value v) {
                              op.communication.peer = static_cast<std::int32_t>(v);
                            }};
  fields["optimus_sequence"] = {kInt64Min, kInt64Max,
                                [](OwnOp& op, Value v) { op.communication.sequence = v; }};
  fields["optimus_tag"] = {kInt64Min, kInt64Max,
                           [](OwnOp& op, Value v) { op.communication.tag = v; }};
  fields["optimus_bytes"] = {kInt64Min, kInt64Max,
                             [](OwnOp& op, Value v) { op.communication.bytes = Bytes(v); }};
  fields["optimus_communication_index"] = {0, kInt32Max,
                                           [](OwnOp& op, Value v) { op.communication_index = v; }};
}

void AddOperationFields(WholeFieldTable& fields) {
  using Value = std::int64_t;
  fields["start_ps"] = {0, kInt64Max, [](OwnOp& op, Value v) { op.start_ps = v; }};
  fields["duration_ps"] = {0, kInt64Max, [](OwnOp& op, Value v) { op.duration_ps = v; }};
  fields["optimus_lane"] = {0, kInt32Max, [](OwnOp& op, Value v) { op.lane = v; }};
  fields["optimus_work_bytes"] = {kInt64Min, kInt64Max, [](OwnOp& op, Value v) {
                                    op.has_work = true;
                                    op.work.bytes = Bytes(v);
                                  }};
  fields["optimus_work_index"] = {0, kInt32Max, [](OwnOp& op, Value v) { op.work_index = v; }};
  fields["optimus_first_dependency"] = {0, kInt32Max,
                                        [](OwnOp& op, Value v) { op.first_dependency = v; }};
}

const WholeFieldTable& WholeFields() {
  static const WholeFieldTable* const fields = [] {
    auto* table = new WholeFieldTable;
    AddOperationFields(*table);
    AddCommunicationFields(*table);
    return table;
  }();
  return *fields;
}

// Pairs: the operation's number, and how it is waited for.
absl::Status ReadDependencies(const AttributeProto& attribute, OwnOp& op) {
  const auto& values = attribute.uint32_list().values();
  if (!attribute.has_uint32_list() || values.size() % 2 != 0) {
    return AttributeError(attribute, "no list of pairs");
  }
  op.dependencies.clear();
  op.dependencies.reserve(static_cast<std::size_t>(values.size()) / 2);
  for (int i = 0; i < values.size(); i += 2) {
    if (values[i + 1] > static_cast<std::uint32_t>(DependencyKind::kEndAfter)) {
      return AttributeError(attribute, absl::StrCat("kind ", values[i + 1]));
    }
    op.dependencies.push_back(
        {.op = values[i], .kind = static_cast<DependencyKind>(values[i + 1])});
  }
  return absl::OkStatus();
}

absl::Status ReadAttribute(const AttributeProto& attribute, OwnOp& op) {
  if (const auto whole = WholeFields().find(attribute.name()); whole != WholeFields().end()) {
    OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t value, WholeNumber(attribute));
    if (value < whole->second.least || value > whole->second.largest) {
      return AttributeError(attribute, absl::StrCat(value));
    }
    whole->second.set(op, value);
  } else if (attribute.name() == "optimus_flops") {
    op.work.flops = attribute.double_val();
    if (!(op.work.flops >= 0) || op.work.flops > std::numeric_limits<double>::max()) {
      return AttributeError(attribute, "no number from 0 on");
    }
  } else if (attribute.name() == "optimus_kind") {
    op.kind = attribute.string_val();
  } else if (attribute.name() == "optimus_communication") {
    op.communication_kind = attribute.string_val();
  } else if (attribute.name() == "optimus_name") {
    op.name = attribute.bytes_val();
  } else if (attribute.name() == "optimus_dependencies") {
    return ReadDependencies(attribute, op);
  }
  return absl::OkStatus();
}

void WriteCommunication(const OwnOp& op, Attributes& to) {
  const Communication& communication = op.communication;
  AddString(to, "optimus_communication", op.communication_kind);
  if (communication.group >= 0) AddInt32(to, "optimus_group", communication.group);
  if (communication.peer != -1) AddInt32(to, "optimus_peer", communication.peer);
  if (communication.sequence != -1) AddInt64(to, "optimus_sequence", communication.sequence);
  if (communication.tag != -1) AddInt64(to, "optimus_tag", communication.tag);
  if (communication.bytes != Bytes(-1)) {
    AddInt64(to, "optimus_bytes", communication.bytes.value());
  }
  if (op.communication_index >= 0) {
    AddInt64(to, "optimus_communication_index", op.communication_index);
  }
}

}  // namespace

absl::StatusOr<OwnOp> ReadOwnOp(const Node& node) {
  OwnOp op;
  for (const AttributeProto& attribute : node.attr()) {
    if (absl::Status status = ReadAttribute(attribute, op); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("node ", node.id(), ": ", status.message()));
    }
  }
  return op;
}

void WriteOwnOp(const OwnOp& op, Node& node) {
  Attributes& to = *node.mutable_attr();
  if (op.start_ps >= 0) AddInt64(to, "start_ps", op.start_ps);
  if (op.duration_ps >= 0) AddInt64(to, "duration_ps", op.duration_ps);
  AddInt32(to, "optimus_lane", static_cast<std::int32_t>(op.lane));
  AddString(to, "optimus_kind", op.kind);
  if (!op.communication_kind.empty()) WriteCommunication(op, to);
  if (op.has_work) {
    AddDouble(to, "optimus_flops", op.work.flops);
    AddInt64(to, "optimus_work_bytes", op.work.bytes.value());
  }
  if (op.work_index >= 0) AddInt64(to, "optimus_work_index", op.work_index);
  if (op.first_dependency >= 0) AddInt64(to, "optimus_first_dependency", op.first_dependency);
  if (op.name.has_value()) AddBytes(to, "optimus_name", *op.name);
  if (op.dependencies.empty()) return;
  auto& attribute = *to.Add();
  attribute.set_name("optimus_dependencies");
  for (const Dependency& dependency : op.dependencies) {
    attribute.mutable_uint32_list()->add_values(dependency.op);
    attribute.mutable_uint32_list()->add_values(static_cast<std::uint32_t>(dependency.kind));
  }
}

}  // namespace optimus::traces::chakra
