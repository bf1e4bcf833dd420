#pragma once
// Communicator groups as files give them: ASTRA-sim's JSON ({"1": [0, 1], "2": [2, 3]}), and the
// list of process groups that PyTorch writes into a node.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "traces/recording/recording.h"

namespace optimus::traces::chakra {

// By name. Of a group without ranks only the name and the words are known.
using GroupTable = absl::btree_map<std::string, CommunicatorGroup>;

// INVALID_ARGUMENT naming `name` (of the file) and the group: no JSON, or no object of lists of
// different ranks from 0 on; a name twice.
absl::StatusOr<GroupTable> ParseGroups(absl::string_view json, const std::string& name);

// Adds the groups of the text of a node's inputs: a Python list that holds a JSON list of objects
// with pg_name, ranks, pg_desc and pg_size. Those of other texts are left out: false.
bool AddProcessGroups(absl::string_view inputs, GroupTable& groups);

// ASTRA-sim's group of all ranks: named "" or "0".
bool IsWorldName(absl::string_view name);

}  // namespace optimus::traces::chakra
