#pragma once
// Recording to Chakra execution traces (schema 0.0.4) and ASTRA-sim's communicator groups.
//
// `{prefix}.{rank}.et`, one for each recorded rank, ascending:
//  - A node an operation, its id the operation's number. data_deps are all the order that the
//    Recording has: dependencies, the operation before it on a lane in order, and for what comes
//    after a host call that waits (kEndAfter), what that waits for.
//  - is_cpu_op is true for host calls alone. Kernels are COMP_NODEs with num_ops and tensor_size
//    where they are known. Copies are MEM_LOAD_NODEs (device to host: MEM_STORE_NODEs) where their
//    bytes are known, else COMP_NODEs.
//  - Communication has the attributes that ASTRA-sim's feeder reads: comm_type, comm_size (of an
//    all-gather what one rank contributes), pg_name; comm_src, comm_dst and a comm_tag that no
//    other message between the two has.
//  - What nobody could read rightly is a COMP_NODE that takes its recorded time: a collective of
//    unknown kind or group (a reader's default would be an all-reduce of all ranks), a message
//    without direction or peer. Sizes that are not known are left out: ASTRA-sim refuses those.
//  - duration_micros is the nearest, but never 0 for an operation that takes time; start_ps and
//    duration_ps are exact.
//  - What Chakra cannot say stands in attributes "optimus_..." (own_format.h), so that
//    ReadChakraAll gives the Recording that was written, but for `format` and `source`; steps and
//    remarks in the order of ranks.
// `{prefix}.groups.json`: ranks of the groups, which are called 1, 2, ... by their place in
// Recording::groups. A group of all ranks is pg_name "0" and not in there, one whose ranks are not
// known neither.

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

// The next piece of `file`. Files come one after another, each at least one piece. What it returns
// other than OK ends the writing.
using ChakraSink = std::function<absl::Status(const std::string& file, absl::string_view piece)>;

// INVALID_ARGUMENT: CheckRecording's, no rank, or names and groups of more than 64 MiB.
absl::Status WriteChakra(const Recording& recording, const std::string& prefix,
                         const ChakraSink& sink);

}  // namespace optimus::traces
