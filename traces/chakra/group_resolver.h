#pragma once
// The groups that the communications of a file name, and sizes as Recording counts them.

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "traces/chakra/draft.h"
#include "traces/chakra/finish.h"
#include "traces/recording/recording.h"

namespace optimus::traces::chakra {

class GroupResolver {
 public:
  // `recording`, `tables` and what `options` points to outlive it.
  GroupResolver(const FinishOptions& options, GroupTable groups_of_nodes, Recording& recording,
                RecordingTables& tables);
  // Group and bytes of `draft`. INVALID_ARGUMENT where the size overflows.
  absl::StatusOr<Communication> Resolve(const DraftCommunication& draft, const std::string& name);

 private:
  std::int32_t GroupOf(const std::string& pg_name, const std::string& op);
  CommunicatorGroup Find(const std::string& name, const std::string& op);
  CommunicatorGroup World() const;
  void Note(const char* what, const char* effect, const std::string& op);

  const FinishOptions options_;
  const GroupTable groups_of_nodes_;
  Recording& recording_;
  RecordingTables& tables_;
  absl::flat_hash_map<std::string, std::int32_t> found_;
};

}  // namespace optimus::traces::chakra
