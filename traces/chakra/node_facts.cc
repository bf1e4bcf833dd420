#include "traces/chakra/node_facts.h"

#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

namespace optimus::traces::chakra {
namespace {

using ::optimus::chakra::AttributeProto;
using ::optimus::chakra::Node;

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kUint32Max = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

absl::Status AttributeError(const AttributeProto& attribute, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("attribute ", absl::CHexEscape(attribute.name()), ": ", what));
}

absl::StatusOr<std::int64_t> Unsigned(const AttributeProto& attribute, std::uint64_t value) {
  if (value <= static_cast<std::uint64_t>(kInt64Max)) return static_cast<std::int64_t>(value);
  return AttributeError(attribute, absl::StrCat(value, " is too large"));
}

absl::StatusOr<std::int64_t> WithinRange(const AttributeProto& attribute, std::int64_t least,
                                         std::int64_t largest) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t value, WholeNumber(attribute));
  if (value >= least && value <= largest) return value;
  return AttributeError(attribute, absl::StrCat(value, " is not from ", least, " to ", largest));
}

absl::StatusOr<double> Number(const AttributeProto& attribute) {
  double value = 0;
  if (attribute.has_double_val()) {
    value = attribute.double_val();
  } else if (attribute.has_float_val()) {
    value = static_cast<double>(attribute.float_val());
  } else {
    OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t whole, WholeNumber(attribute));
    value = static_cast<double>(whole);
  }
  if (value >= 0 && value <= std::numeric_limits<double>::max()) return value;
  return AttributeError(attribute, "not a number from 0 on");
}

// The feeder has tags as unsigned numbers of 32 bits, files have them as signed ones.
absl::StatusOr<std::int64_t> Tag(const AttributeProto& attribute) {
  OPTIMUS_ASSIGN_OR_RETURN(
      const std::int64_t value,
      WithinRange(attribute, std::numeric_limits<std::int32_t>::min(), kInt64Max));
  return value < 0 ? value + kUint32Max + 1 : value;
}

enum class Known {
  kIsCpuOp,
  kNumOps,
  kTensorSize,
  kCommType,
  kCommSize,
  kCommSrc,
  kCommDst,
  kCommTag,
  kPgName,
  kStream,
  kTid,
  kStartPs,
  kDurationPs
};

const absl::flat_hash_map<absl::string_view, Known>& KnownNames() {
  static const auto* const names =
      new absl::flat_hash_map<absl::string_view, Known>{{"is_cpu_op", Known::kIsCpuOp},
                                                        {"num_ops", Known::kNumOps},
                                                        {"tensor_size", Known::kTensorSize},
                                                        {"comm_type", Known::kCommType},
                                                        {"comm_size", Known::kCommSize},
                                                        {"comm_src", Known::kCommSrc},
                                                        {"comm_dst", Known::kCommDst},
                                                        {"comm_tag", Known::kCommTag},
                                                        {"pg_name", Known::kPgName},
                                                        {"stream", Known::kStream},
                                                        {"tid", Known::kTid},
                                                        {"start_ps", Known::kStartPs},
                                                        {"duration_ps", Known::kDurationPs}};
  return *names;
}

// `to` = `from`, or its error.
template <class To, class From>
absl::Status Put(To& to, absl::StatusOr<From> from) {
  if (!from.ok()) return from.status();
  to = *std::move(from);
  return absl::OkStatus();
}

absl::Status ReadCommunication(Known known, const AttributeProto& attribute, NodeFacts& facts) {
  switch (known) {
    case Known::kCommType:
      return Put(facts.comm_type, WholeNumber(attribute));
    case Known::kCommSize:
      return Put(facts.comm_size, WithinRange(attribute, 0, kInt64Max));
    case Known::kCommSrc:
      return Put(facts.comm_src, WithinRange(attribute, 0, kInt32Max));
    case Known::kCommDst:
      return Put(facts.comm_dst, WithinRange(attribute, 0, kInt32Max));
    case Known::kCommTag:
      return Put(facts.comm_tag, Tag(attribute));
    default:
      return Put(facts.pg_name, Text(attribute));
  }
}

absl::Status ReadAttribute(Known known, const AttributeProto& attribute, NodeFacts& facts) {
  switch (known) {
    case Known::kIsCpuOp: {
      OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t value, WholeNumber(attribute));
      facts.is_cpu_op = value != 0;
      return absl::OkStatus();
    }
    case Known::kNumOps:
      return Put(facts.num_ops, Number(attribute));
    case Known::kTensorSize:
      return Put(facts.tensor_size, WithinRange(attribute, 0, kInt64Max));
    case Known::kStream:
      return Put(facts.stream, WholeNumber(attribute));
    case Known::kTid:
      return Put(facts.tid, WholeNumber(attribute));
    case Known::kStartPs:
      return Put(facts.start_ps, WithinRange(attribute, 0, kInt64Max));
    case Known::kDurationPs:
      return Put(facts.duration_ps, WithinRange(attribute, 0, kInt64Max));
    default:
      return ReadCommunication(known, attribute, facts);
  }
}

}  // namespace

absl::StatusOr<std::int64_t> WholeNumber(const AttributeProto& attribute) {
  switch (attribute.value_case()) {
    case AttributeProto::kInt32Val:
      return attribute.int32_val();
    case AttributeProto::kInt64Val:
      return attribute.int64_val();
    case AttributeProto::kUint32Val:
      return attribute.uint32_val();
    case AttributeProto::kUint64Val:
      return Unsigned(attribute, attribute.uint64_val());
    case AttributeProto::kSint32Val:
      return attribute.sint32_val();
    case AttributeProto::kSint64Val:
      return attribute.sint64_val();
    case AttributeProto::kFixed32Val:
      return attribute.fixed32_val();
    case AttributeProto::kFixed64Val:
      return Unsigned(attribute, attribute.fixed64_val());
    case AttributeProto::kSfixed32Val:
      return attribute.sfixed32_val();
    case AttributeProto::kSfixed64Val:
      return attribute.sfixed64_val();
    case AttributeProto::kBoolVal:
      return attribute.bool_val() ? 1 : 0;
    default:
      return AttributeError(attribute, "not a whole number");
  }
}

absl::StatusOr<std::string> Text(const AttributeProto& attribute) {
  if (attribute.has_string_val()) return attribute.string_val();
  if (attribute.has_bytes_val()) return attribute.bytes_val();
  const absl::StatusOr<std::int64_t> number = WholeNumber(attribute);
  if (number.ok()) return absl::StrCat(*number);
  return AttributeError(attribute, "neither text nor a whole number");
}

absl::StatusOr<NodeFacts> ReadFacts(const Node& node) {
  NodeFacts facts;
  for (const AttributeProto& attribute : node.attr()) {
    const auto known = KnownNames().find(attribute.name());
    if (known == KnownNames().end()) continue;
    if (absl::Status status = ReadAttribute(known->second, attribute, facts); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("node ", node.id(), ": ", status.message()));
    }
  }
  return facts;
}

}  // namespace optimus::traces::chakra
