#pragma once
// Requests in flight, tested together: one call of MPI a round of polling, however many operations
// wait.

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace optimus::executor {

// What an operation waits for.
struct Pending {
  int left = 0;
  int error = MPI_SUCCESS;  // the first
  int source = -1;          // the last message came from
  bool done() const { return left == 0; }
};

class RequestSet {
 public:
  // `pending` counts the request until it is done; it and the data stay where they are for so long.
  // MPI_Isend and MPI_Irecv. INVALID_ARGUMENT where MPI cannot count so many (2^31 and more).
  absl::Status Send(const void* data, std::int64_t count, MPI_Datatype type, int to, int tag,
                    MPI_Comm comm, Pending& pending);
  absl::Status Receive(void* data, std::int64_t count, MPI_Datatype type, int from, int tag,
                       MPI_Comm comm, Pending& pending);
  // Gives up receives.
  absl::Status Cancel(Pending& pending);
  // Does nothing within a microsecond of the last time.
  absl::Status Test();
  // Whatever has been done by now.
  absl::Status TestNow();

 private:
  void Add(MPI_Request request, Pending& pending);
  void Finish(int index, const MPI_Status& status, int error);
  void Remove(int count);

  std::vector<MPI_Request> requests_;
  std::vector<Pending*> pending_;  // parallel to requests_
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
  std::int64_t last_ns_ = 0;
};

}  // namespace optimus::executor
