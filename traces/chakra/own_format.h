#pragma once
// What files of WriteChakra say beyond Chakra's schema, so that reading them gives the Recording
// that was written: attributes of GlobalMetadata and of nodes whose names begin with "optimus_".
// Others ignore them. Table-like things are parallel lists.
//
// GlobalMetadata of every file: the rank, the kind of run, lanes, the groups that the rank uses,
// its steps and remarks. The first file has all groups and names, in their order, and the steps and
// remarks of ranks without a file.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "traces/chakra/et_subset.pb.h"
#include "traces/recording/recording.h"

namespace optimus::traces::chakra {

inline constexpr std::int32_t kOwnFormat = 1;

// Whether `metadata` is of a file of ours.
bool IsOwn(const ::optimus::chakra::GlobalMetadata& metadata);

// Everything but operations. `recording` has exactly one rank afterwards, without operations.
// `group_numbers`: of each of its groups, the index in the Recording that was written.
// INVALID_ARGUMENT "attribute NAME: ..." where one is missing or damaged, or the format is a later
// one.
absl::Status ReadOwnMetadata(const ::optimus::chakra::GlobalMetadata& metadata,
                             Recording& recording, std::vector<std::int32_t>& group_numbers);

// `index`: of the rank in `recording`.
void WriteOwnMetadata(const Recording& recording, std::size_t index,
                      ::optimus::chakra::GlobalMetadata& metadata);

// Of one node. What is -1 or empty is not there.
struct OwnOp {
  std::int64_t start_ps = -1, duration_ps = -1;
  std::int64_t lane = -1;
  std::string kind, communication_kind;   // ToString
  Communication communication;            // group: of the Recording that was written
  std::int64_t communication_index = -1;  // -1: behind that of the communication before it
  bool has_work = false;
  Work work;
  std::int64_t work_index = -1;
  std::int64_t first_dependency = -1;
  std::vector<Dependency> dependencies;
  std::optional<std::string> name;  // where it is no UTF-8
};

// INVALID_ARGUMENT "node N: attribute NAME: ...".
absl::StatusOr<OwnOp> ReadOwnOp(const ::optimus::chakra::Node& node);
void WriteOwnOp(const OwnOp& op, ::optimus::chakra::Node& node);

}  // namespace optimus::traces::chakra
