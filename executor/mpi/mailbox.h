#pragma once
// Messages from any rank, taken as they come: one receive waits for the next header of anybody; a
// header that has come has its payload received at once. So no sender waits for a receive of the
// program, a step of many messages costs no more than one to poll, and memory is needed only for
// data that is wanted.
//
// Headers of one sender are received in the order in which it sent them, and the payloads follow in
// the same order; so one tag is enough for all of them.

#include <mpi.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "executor/mpi/memory_ring.h"
#include "executor/mpi/request_set.h"
#include "executor/mpi/wire.h"

namespace optimus::executor {

class Mailbox {
 public:
  static constexpr int kHeaderTag = 0, kPayloadTag = 1;

  struct Arrival {
    WireHeader header;
    bool has_header = false;
    bool expected = false;  // the program knows of it
    bool keeps = false;     // and wants the data
    Pending payload;
    std::vector<float> data;  // where it is kept
    bool done() const { return has_header && payload.done(); }
  };

  // Without `payloads` messages consist of their header.
  Mailbox(MPI_Comm comm, RequestSet& requests, MemoryRing& ring, bool payloads)
      : comm_(comm), requests_(requests), ring_(ring), payloads_(payloads) {}

  // Starts and ends listening.
  absl::Status Open();
  absl::Status Close();
  // Data that is not kept goes to the ring, where room for it is reserved. INVALID_ARGUMENT where
  // the message is expected already.
  absl::Status Expect(int source, std::int32_t message, bool keeps);
  // Null where nobody expects it.
  const Arrival* Find(int source, std::int32_t message) const;
  // Of a message that is done.
  Arrival Take(int source, std::int32_t message);
  // What the requests that were done since allow.
  absl::Status Progress();

 private:
  using Key = std::pair<int, std::int32_t>;  // source, message

  absl::Status Listen();
  absl::Status TakeHeader();
  absl::Status ReceivePayload(int source, Arrival& arrival);

  MPI_Comm comm_;
  RequestSet& requests_;
  MemoryRing& ring_;
  bool payloads_;
  WireHeader next_;  // the header that comes next
  Pending next_pending_;
  std::map<Key, std::unique_ptr<Arrival>> arrivals_;
};

}  // namespace optimus::executor
