#include "executor/mpi/mailbox.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/mpi/mpi_status.h"

namespace optimus::executor {

absl::Status Mailbox::Listen() {
  next_pending_ = {};
  return requests_.Receive(&next_, sizeof next_, MPI_BYTE, MPI_ANY_SOURCE, kHeaderTag, comm_,
                           next_pending_);
}

absl::Status Mailbox::Open() { return Listen(); }
absl::Status Mailbox::Close() { return requests_.Cancel(next_pending_); }

absl::Status Mailbox::Expect(int source, std::int32_t message, bool keeps) {
  std::unique_ptr<Arrival>& arrival = arrivals_[Key(source, message)];
  if (arrival == nullptr) {
    arrival = std::make_unique<Arrival>();
  }
  if (arrival->expected) {
    return absl::InvalidArgumentError(
        absl::StrCat("message ", message, " of rank ", source, " is expected twice in one step"));
  }
  arrival->expected = true;
  arrival->keeps = keeps;
  return absl::OkStatus();
}

const Mailbox::Arrival* Mailbox::Find(int source, std::int32_t message) const {
  const auto found = arrivals_.find(Key(source, message));
  return found == arrivals_.end() || !found->second->expected ? nullptr : found->second.get();
}

Mailbox::Arrival Mailbox::Take(int source, std::int32_t message) {
  const auto found = arrivals_.find(Key(source, message));
  const std::unique_ptr<Arrival> arrival = std::move(found->second);
  arrivals_.erase(found);
  return std::move(*arrival);
}

absl::Status Mailbox::Progress() {
  while (next_pending_.done()) {
    OPTIMUS_RETURN_IF_ERROR(MpiStatus(next_pending_.error, "MPI_Irecv of a message's header"));
    OPTIMUS_RETURN_IF_ERROR(TakeHeader());
    OPTIMUS_RETURN_IF_ERROR(Listen());
    // Others may be there already.
    OPTIMUS_RETURN_IF_ERROR(requests_.TestNow());
  }
  return absl::OkStatus();
}

// The program may not have come to expect it: a sender can be a step's begin ahead.
absl::Status Mailbox::TakeHeader() {
  const int source = next_pending_.source;
  std::unique_ptr<Arrival>& arrival = arrivals_[Key(source, next_.number)];
  if (arrival == nullptr) {
    arrival = std::make_unique<Arrival>();
  }
  if (arrival->has_header) {
    return absl::DataLossError(
        absl::StrCat("message ", next_.number, " of rank ", source, " came twice in one step"));
  }
  arrival->header = next_;
  arrival->has_header = true;
  if (!payloads_ || next_.floats <= 0) {
    return absl::OkStatus();
  }
  return ReceivePayload(source, *arrival);
}

// Of a message that is not expected yet nobody knows whether its data is wanted; of one that is not
// as long as it should be there may be no room.
absl::Status Mailbox::ReceivePayload(int source, Arrival& arrival) {
  const std::int64_t floats = arrival.header.floats;
  const bool keeps = arrival.keeps || !arrival.expected;
  float* place = keeps ? nullptr : ring_.Next(floats);
  if (place == nullptr) {
    arrival.data.resize(static_cast<std::size_t>(floats));
    place = arrival.data.data();
  }
  return requests_.Receive(place, floats, MPI_FLOAT, source, kPayloadTag, comm_, arrival.payload);
}

}  // namespace optimus::executor
