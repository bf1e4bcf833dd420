#pragma once
// A Timeline of ours as a Recording: format "optimus timeline".
//
//   rank        one for each rank that has spans. It stands for as many GPUs as its entity in the
//               Timeline does; Recording::folded where that is more than one.
//   operation   its number is its id in the program. Named as in a Perfetto trace (span_name.h).
//   lane        one for each ir::Stream that the program uses, in order of issue; its id is the
//               stream's number.
//   kernel      kCompute, with FLOPs and bytes where the Schedule says them.
//   collective  kCommunication of the group that the rank is in, numbered by order of issue. A
//               group of one rank stays a group.
//   send,       kCommunication with the other side's rank and the message's number as tag, of the
//   receive     bytes of the transfer: -1 (not said) where it has none, so where it is free or of a
//               measured duration. A receive's span begins when its stream is free and ends when
//               the message has arrived: it has no length of its own.
//   wait        kAfter for each dependency of the program.
//
// Times are those of schedule/ir/schedule.h: one clock, a send needs no posted receive
// (MessageRule::kEager). In a simulated step a collective starts when all its members are there
// (waits_inside = false); in a measured one each member starts when it is issued.

#include <cstdint>

#include "absl/status/statusor.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/timeline.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

struct ToRecordingOptions {
  // Every rank of the world, each a copy of the one that ran its program, with groups and peers of
  // its own: for readers that want a file a rank.
  bool all_ranks = false;
  // More are refused: a Recording takes some 150 bytes an operation.
  std::int64_t most_operations = 8'000'000;
};

// `schedule` has passed ir::Validate. Errors of CollectTimes (rank_times.h); INVALID_ARGUMENT with
// both numbers where the Recording would have too many operations, or its groups too many members.
absl::StatusOr<Recording> ToRecording(const ir::Schedule& schedule, const ir::Timeline& timeline,
                                      const ToRecordingOptions& options = {});

}  // namespace optimus::traces
