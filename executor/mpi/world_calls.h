#pragma once
// What ranks agree on outside a step, over rank 0: plain messages instead of MPI's collectives, so
// that rank 0 can name who has not answered, and a call that another rank does not make is found.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/mpi/mpi_state.h"

namespace optimus::executor {

class WorldCalls {
 public:
  explicit WorldCalls(MpiState& state) : state_(state) {}

  absl::Status Barrier();
  absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine);
  absl::StatusOr<std::string> Broadcast(const std::string& from_rank_0);

  enum class Kind : std::int32_t { kBarrier, kGather, kBroadcast };

 private:
  absl::Status ToRankZero(Kind kind, const std::string& mine);
  absl::StatusOr<std::vector<std::string>> AtRankZero(Kind kind, const std::string& mine);
  absl::Status FromRankZero(Kind kind, const std::string& text);
  absl::StatusOr<std::string> OfRankZero(Kind kind);

  MpiState& state_;
  std::int32_t calls_ = 0;  // so far: the number of a call
};

}  // namespace optimus::executor
