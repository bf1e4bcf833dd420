#pragma once
// Operations of a file that WriteChakra wrote.

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "traces/chakra/et_subset.pb.h"
#include "traces/chakra/own_format.h"
#include "traces/recording/recording.h"

namespace optimus::traces::chakra {

class OwnReader {
 public:
  // `recording` as ReadOwnMetadata made it; both outlive the reader.
  OwnReader(Recording& recording, RecordingTables& tables,
            const std::vector<std::int32_t>& group_numbers);
  // INVALID_ARGUMENT "node N: ...".
  absl::Status Add(const ::optimus::chakra::Node& node);
  // Puts communications, works and dependencies where they were. INVALID_ARGUMENT where that is
  // nowhere.
  absl::Status Finish();

 private:
  absl::Status AddTimes(const OwnOp& own, RecordedOp& op) const;
  absl::Status AddCommunication(const OwnOp& own, RecordedOp& op);
  absl::Status AddDependencies(const OwnOp& own, RecordedOp& op);
  void AddWork(const OwnOp& own, RecordedOp& op);
  absl::Status PlaceDependencies();

  RecordingTables& tables_;
  RecordedRank& rank_;
  absl::flat_hash_map<std::int32_t, std::int32_t> groups_;  // number to index
  std::vector<Communication> communications_;               // in the order of operations
  std::vector<Work> works_;
  std::vector<Dependency> dependencies_;
};

}  // namespace optimus::traces::chakra
