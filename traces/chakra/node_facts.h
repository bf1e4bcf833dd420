#pragma once
// What a Node says, with the attributes that somebody gives a meaning to.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "traces/chakra/et_subset.pb.h"

namespace optimus::traces::chakra {

// Attributes of nodes as ASTRA-sim's feeder and Chakra's PyTorch converter name them. Integers may
// be of any kind that the schema has: so does the feeder take them.
struct NodeFacts {
  // The feeder's default: a node without it is the GPU's.
  bool is_cpu_op = false;
  std::optional<double> num_ops;
  std::optional<std::int64_t> tensor_size;  // bytes, not negative
  std::optional<std::int64_t> comm_type;    // CollectiveCommType
  std::optional<std::int64_t> comm_size;    // bytes, as ASTRA-sim counts; not negative
  std::optional<std::int64_t> comm_src, comm_dst, comm_tag;
  std::optional<std::string> pg_name;
  std::optional<std::int64_t> stream, tid;
  // Ours: exact times, in any file.
  std::optional<std::int64_t> start_ps, duration_ps;
};

// INVALID_ARGUMENT "node N: attribute NAME: ..." where a value is of a kind that has no such
// meaning, or out of its range.
absl::StatusOr<NodeFacts> ReadFacts(const ::optimus::chakra::Node& node);

// A whole number of any kind; INVALID_ARGUMENT "attribute NAME: ..." where it is none, or does not
// fit into int64.
absl::StatusOr<std::int64_t> WholeNumber(const ::optimus::chakra::AttributeProto& attribute);
// A string, or a whole number as text. INVALID_ARGUMENT as above.
absl::StatusOr<std::string> Text(const ::optimus::chakra::AttributeProto& attribute);

}  // namespace optimus::traces::chakra
