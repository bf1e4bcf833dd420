#include "executor/mpi/world_setup.h"

#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/host/host_device.h"
#include "executor/mpi/clock.h"
#include "executor/mpi/mpi_status.h"

namespace optimus::executor {
namespace {

absl::Status Initialize(int& argc, char**& argv) {
  int done = 0;
  OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Initialized, &done);
  if (done != 0) {
    return absl::FailedPreconditionError("MPI is already initialized; join the world once");
  }
  int given = MPI_THREAD_SINGLE;
  OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Init_thread, &argc, &argv, MPI_THREAD_MULTIPLE, &given);
  if (given < MPI_THREAD_MULTIPLE) {
    MPI_Finalize();
    return absl::FailedPreconditionError(
        "the MPI library does not give MPI_THREAD_MULTIPLE; use one that is built with it");
  }
  // What is made from these two inherits it.
  OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Comm_set_errhandler, MPI_COMM_SELF, MPI_ERRORS_RETURN);
  return absl::OkStatus();
}

absl::Status MakeCommunicators(MpiState& state) {
  OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Comm_rank, MPI_COMM_WORLD, &state.rank);
  OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Comm_size, MPI_COMM_WORLD, &state.size);
  for (MPI_Comm* each : {&state.calls, &state.notes, &state.messages, &state.groups}) {
    OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Comm_dup, MPI_COMM_WORLD, each);
  }
  OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Comm_split_type, MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, state.rank,
                              MPI_INFO_NULL, &state.node);
  OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Comm_rank, state.node, &state.local_rank);
  OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Comm_size, state.node, &state.local_size);
  int* limit = nullptr;
  int found = 0;
  OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Comm_get_attr, MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found);
  if (found != 0) state.largest_tag = *limit;
  return absl::OkStatus();
}

constexpr int kRounds = 20;

// Rank 0's side: one rank after the other.
absl::Status AnswerPings(const MpiState& state, int rank) {
  for (int i = 0; i < kRounds; ++i) {
    OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Recv, nullptr, 0, MPI_BYTE, rank, 0, state.calls,
                                MPI_STATUS_IGNORE);
    const std::int64_t now = NowNs();
    OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Send, &now, 1, MPI_INT64_T, rank, 0, state.calls);
  }
  return absl::OkStatus();
}

absl::Status PingRankZero(MpiState& state) {
  std::array<PingPong, kRounds> rounds;
  for (PingPong& round : rounds) {
    round.sent_ns = NowNs();
    OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Send, nullptr, 0, MPI_BYTE, 0, 0, state.calls);
    OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Recv, &round.answered_ns, 1, MPI_INT64_T, 0, 0, state.calls,
                                MPI_STATUS_IGNORE);
    round.received_ns = NowNs();
  }
  state.clock_offset_ns = ClockOffsetNs(rounds);
  return absl::OkStatus();
}

// The first rank of every other node measures for its node.
absl::Status AlignClocks(bool measure_all, MpiState& state) {
  int first_of_node = state.rank;
  OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Bcast, &first_of_node, 1, MPI_INT, 0, state.node);
  const bool other_node = first_of_node != 0;
  const int pings =
      state.rank != 0 && (measure_all || (other_node && state.local_rank == 0)) ? 1 : 0;
  std::vector<int> all(static_cast<std::size_t>(state.size));
  OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Allgather, &pings, 1, MPI_INT, all.data(), 1, MPI_INT,
                              state.calls);
  for (int rank = 0; rank < state.size && state.rank == 0; ++rank) {
    if (all[static_cast<std::size_t>(rank)] != 0) OPTIMUS_RETURN_IF_ERROR(AnswerPings(state, rank));
  }
  if (pings != 0) OPTIMUS_RETURN_IF_ERROR(PingRankZero(state));
  if (!measure_all) {
    OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Bcast, &state.clock_offset_ns, 1, MPI_INT64_T, 0, state.node);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SetUpMpi(int& argc, char**& argv, bool measure_all_clocks, MpiState& state) {
  OPTIMUS_RETURN_IF_ERROR(Initialize(argc, argv));
  OPTIMUS_RETURN_IF_ERROR(MakeCommunicators(state));
  return AlignClocks(measure_all_clocks, state);
}

}  // namespace optimus::executor
