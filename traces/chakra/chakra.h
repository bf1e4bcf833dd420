#pragma once
// Chakra execution traces (MLCommons; schema 0.0.4 and 1.0.0): one file `{prefix}.{rank}.et` a
// rank, plain or gzip, with the communicator groups in a JSON file as ASTRA-sim reads them. See
// write.h for the other direction.
//
// What is taken from where, after ASTRA-sim's feeder and Chakra's PyTorch converter:
//  - COMP_NODE: a host call if its attribute is_cpu_op says so, else a kernel (without the
//  attribute
//    as well: the feeder's default). MEM_LOAD_NODE and MEM_STORE_NODE: a copy of tensor_size bytes.
//    COMM_*_NODE: communication; marked is_cpu_op, the host call that issues one. METADATA_NODE and
//    INVALID_NODE: no operation, but dependencies through them hold.
//  - Lanes: `tid` of host calls; `stream` of the GPU's, or `tid` (older converters put the stream
//    there), or else one lane for each of compute, copy, communication, send and receive.
//  - data_deps and ctrl_deps: after the end of the other, as ASTRA-sim's feeder (V3) has both.
//    Chakra's own feeder has data_deps alone: ChakraOptions::control_dependencies. A ctrl_dep on a
//    node that was not over by the recorded times is a call inside a call, not an order: left out.
//    So are all of a file without times where they go in a circle and data_deps do not.
//  - start_time_micros and duration_micros, or the attributes start_ps and duration_ps of our own
//    files. Without start times, operations start as early as their dependencies and those before
//    them on the thread or stream let them; those without a duration as well are untimed.
//  - comm_type, never all-reduce where it is missing. comm_size: ASTRA-sim counts what one rank
//    contributes to an all-gather; Recording has the gathered size. Where the group's size is not
//    known, neither is that.
//  - pg_name: a group of the groups file or of the list of process groups that PyTorch writes into
//    a METADATA_NODE. None, "" and "0" are all ranks.
// Files of WriteChakra say more, in attributes "optimus_...": read back, they are what was written.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

struct ChakraOptions {
  std::int32_t rank = -1;  // -1: from the file's name, or from what WriteChakra wrote
  // Ranks of the job, for the size of the group of all ranks; 0: not known (ReadChakraAll: as many
  // as there are files, if those are of ranks 0, 1, 2, ...).
  std::int32_t world = 0;
  std::string groups_path = {};  // communicator groups (JSON); empty: none
  bool control_dependencies = true;
};

// INVALID_ARGUMENT naming file and byte, node or attribute (and what to do): a file that is no
// Chakra trace or of another schema version, truncated or damaged; a node id twice; a value out of
// its range. Nothing half read. The groups file likewise.
absl::StatusOr<Recording> ReadChakra(const std::string& path, const ChakraOptions& options = {});

// The same of a file's content; `name` is its name. `groups_json`: content of the groups file, or
// empty. `options.groups_path` is not looked at.
absl::StatusOr<Recording> ReadChakraBytes(absl::string_view bytes, const std::string& name,
                                          absl::string_view groups_json = {},
                                          const ChakraOptions& options = {});

// Files of one run, one a rank, joined. `options.rank` is not looked at. INVALID_ARGUMENT also as
// Join says (recording.h), and where `paths` is empty.
absl::StatusOr<Recording> ReadChakraAll(const std::vector<std::string>& paths,
                                        const ChakraOptions& options = {});

// The files {prefix}.{rank}.et that are there, ascending by rank. NOT_FOUND naming `prefix` if
// none.
absl::StatusOr<std::vector<std::string>> FindChakraFiles(const std::string& prefix);

// The rank in the name of a file: 3 of "run.3.et", "run.3.et.gz"; -1: none.
std::int32_t RankOfChakraFile(absl::string_view path);

}  // namespace optimus::traces
