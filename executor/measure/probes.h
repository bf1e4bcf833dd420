#pragma once
// A probe is a Schedule made for measuring and how its samples are read from the times of one step
// of it. Repetition 0 of every probe is a warm-up and gives no sample. Probes are plain data: the
// same at every rank, and samples are read where all ranks' times are (rank 0).

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "executor/measure/measure.h"
#include "executor/runtime/runtime.h"
#include "schedule/ir/schedule.h"

namespace optimus::executor {

using StepTimes = std::vector<std::vector<OperationTime>>;  // by rank, operation
using Series = std::vector<std::vector<double>>;            // nanoseconds, by case, repetition

struct ProbeWorld {
  int ranks = 1;
  int ranks_per_node = 1;
};

// Every kernel once a repetition, in the given order, one after the other on all ranks.
struct KernelProbe {
  ir::Schedule schedule;
  int kernels = 0, repetitions = 0;
};
KernelProbe MakeKernelProbe(absl::Span<const Kernel> kernels, int repetitions, ProbeWorld world);
// By kernel. A sample is the mean over ranks.
Series ReadKernels(const KernelProbe& probe, const StepTimes& times);

// A case's collective in all groups of its shape at once, every size once a repetition, each after
// a small all-reduce that gathers the members.
struct CollectiveProbe {
  ir::Schedule schedule;
  int sizes = 0, repetitions = 0;
};
// INVALID_ARGUMENT where the ranks cannot be divided into such groups.
absl::StatusOr<CollectiveProbe> MakeCollectiveProbe(const TransferCase& transfer, int repetitions,
                                                    ProbeWorld world);
// By size. A sample is the mean over groups.
Series ReadCollectives(const CollectiveProbe& probe, const StepTimes& times);

// Messages to and fro between pairs of ranks, every size once a repetition.
struct MessageProbe {
  ir::Schedule schedule;
  int sizes = 0, repetitions = 0;
  std::vector<std::int32_t> first_stages;  // of every pair, its first stage; the other is the next
};
// INVALID_ARGUMENT for a world of one rank.
absl::StatusOr<MessageProbe> MakeMessageProbe(const TransferCase& transfer, int repetitions,
                                              ProbeWorld world);
// By size. A sample is the mean over pairs.
Series ReadMessages(const MessageProbe& probe, const StepTimes& times);

// In every repetition: collectives alone, kernels alone, then both at once. Every rank runs the
// same program.
struct InterferenceProbe {
  struct Repetition {                                 // ids of operations
    std::vector<std::uint32_t> collectives, kernels;  // alone; the first only starts the count
    std::vector<std::uint32_t> collectives_together, kernels_together;  // likewise
  };
  ir::Schedule schedule;
  std::vector<Repetition> repetitions;  // without the warm-up
};
struct InterferenceCase {
  Kernel kernel;
  TransferCase transfer;                    // its largest size is taken
  double kernel_ns = 0, collective_ns = 0;  // about what each takes alone
};
absl::StatusOr<InterferenceProbe> MakeInterferenceProbe(const InterferenceCase& interference,
                                                        int repetitions, ProbeWorld world);
// Together / alone, by repetition; repetitions in which nothing ran wholly under the other give no
// factor. A kernel counts where collectives ran from before its begin until after its end, and the
// other way round. Medians within a repetition and rank, means over ranks.
struct InterferenceFactors {
  std::vector<double> kernel, collective;
};
InterferenceFactors ReadInterference(const InterferenceProbe& probe, const StepTimes& times);

// The Parallelism of `world` and its group of the shape of `transfer`, every group at once.
// INVALID_ARGUMENT as MakeCollectiveProbe.
struct GroupPlacement {
  ir::Parallelism world;
  ir::Group group;
};
absl::StatusOr<GroupPlacement> PlaceGroups(const TransferCase& transfer, ProbeWorld world);

}  // namespace optimus::executor
