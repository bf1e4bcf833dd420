#include "executor/mpi/message_tasks.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/mpi/exchange_plan.h"
#include "executor/mpi/mpi_status.h"

namespace optimus::executor {
namespace {

class SendTask : public HostTask {
 public:
  SendTask(std::shared_ptr<Transport> transport, MessageEnds ends, const MessageCall& call)
      : transport_(std::move(transport)), ends_(ends), call_(call) {}

  ~SendTask() override {
    const std::lock_guard lock(transport_->mutex);
    if (flight_->pending.done()) {
      return;
    }
    // Given up: MPI may still read the buffer, for as long as this process lives.
    transport_->mpi.failed.store(true, std::memory_order_relaxed);
    (void)flight_.release();
  }

  absl::Status Start(std::int64_t ready_ns) override {
    const Pacing* const pacing = transport_->pacing;
    absl::Span<const float> data;
    if (call_.payload.input) data = call_.payload.input();
    const std::int64_t floats =
        call_.payload.input ? static_cast<std::int64_t>(data.size()) : FloatsOf(call_.bytes);
    if (pacing != nullptr) {
      end_ns_ = pacing->MessageEndNs(call_.message, call_.bytes, ends_.source, ends_.destination,
                                     ready_ns);
    }
    flight_->header = {call_.stamp, call_.message,
                       kMessage,    0,
                       floats,      transport_->ToWire(pacing == nullptr ? ready_ns : end_ns_)};
    const std::lock_guard lock(transport_->mutex);
    return Post(data, pacing == nullptr ? floats : 0);
  }

  absl::StatusOr<std::optional<std::int64_t>> Poll() override {
    if (!sent_) {
      const std::lock_guard lock(transport_->mutex);
      OPTIMUS_RETURN_IF_ERROR(transport_->Test());
      sent_ = flight_->pending.done();
      if (!sent_) {
        return std::nullopt;
      }
      OPTIMUS_RETURN_IF_ERROR(MpiStatus(flight_->pending.error, "MPI_Isend of a message"));
    }
    const std::int64_t now = NowNs();
    if (now < end_ns_) {
      return std::nullopt;
    }
    if (call_.payload.done) call_.payload.done();
    return transport_->pacing == nullptr ? now : end_ns_;
  }

  std::int64_t NotBeforeNs() const override { return sent_ ? end_ns_ : 0; }

 private:
  // Header and payload one after the other: see Mailbox.
  absl::Status Post(absl::Span<const float> data, std::int64_t floats) {
    RequestSet& requests = transport_->requests;
    const MPI_Comm comm = transport_->mpi.messages;
    OPTIMUS_RETURN_IF_ERROR(requests.Send(&flight_->header, sizeof(WireHeader), MPI_BYTE,
                                          ends_.destination, Mailbox::kHeaderTag, comm,
                                          flight_->pending));
    if (floats == 0) {
      return absl::OkStatus();
    }
    flight_->data.assign(data.begin(), data.end());
    const float* const place =
        data.empty() ? transport_->inputs.Next(floats) : flight_->data.data();
    return requests.Send(place, floats, MPI_FLOAT, ends_.destination, Mailbox::kPayloadTag, comm,
                         flight_->pending);
  }

  struct Flight {
    WireHeader header;
    std::vector<float> data;
    Pending pending;
  };
  std::shared_ptr<Transport> transport_;
  MessageEnds ends_;
  MessageCall call_;
  std::unique_ptr<Flight> flight_ = std::make_unique<Flight>();
  bool sent_ = false;
  std::int64_t end_ns_ = 0;  // nominal; 0: when it is sent
};

class ReceiveTask : public HostTask {
 public:
  ReceiveTask(std::shared_ptr<Transport> transport, MessageEnds ends, const MessageCall& call)
      : transport_(std::move(transport)), ends_(ends), call_(call) {}

  absl::Status Start(std::int64_t ready_ns) override {
    ready_ns_ = ready_ns;
    const std::lock_guard lock(transport_->mutex);
    if (transport_->mailbox.Find(ends_.source, call_.message) == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat(StampLine(call_.stamp, call_.text), ": message ", call_.message, " of rank ",
                       ends_.source, " was not announced by Communicator::Expect"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<std::int64_t>> Poll() override {
    if (!arrived_) {
      OPTIMUS_ASSIGN_OR_RETURN(arrived_, TakeArrival());
      if (!arrived_) {
        return std::nullopt;
      }
    }
    const std::int64_t now = NowNs();
    if (now < end_ns_) {
      return std::nullopt;
    }
    return transport_->pacing == nullptr ? now : end_ns_;
  }

  std::int64_t NotBeforeNs() const override { return arrived_ ? end_ns_ : 0; }

 private:
  absl::StatusOr<bool> TakeArrival() {
    Mailbox::Arrival arrival;
    {
      const std::lock_guard lock(transport_->mutex);
      OPTIMUS_RETURN_IF_ERROR(transport_->Test());
      const Mailbox::Arrival* const there = transport_->mailbox.Find(ends_.source, call_.message);
      if (!there->done()) {
        return false;
      }
      arrival = transport_->mailbox.Take(ends_.source, call_.message);
    }
    OPTIMUS_RETURN_IF_ERROR(Check(arrival.header));
    OPTIMUS_RETURN_IF_ERROR(MpiStatus(arrival.payload.error, "MPI_Irecv of a message"));
    OPTIMUS_RETURN_IF_ERROR(Deliver(arrival));
    if (transport_->pacing != nullptr) {
      end_ns_ = std::max(ready_ns_, transport_->FromWire(arrival.header.ready_ns));
    }
    return true;
  }

  absl::Status Check(const WireHeader& header) const {
    const bool known_size = !call_.payload.output;
    const WireHeader expected = {call_.stamp,
                                 call_.message,
                                 kMessage,
                                 0,
                                 known_size ? FloatsOf(call_.bytes) : header.floats,
                                 0};
    if (header.stamp == expected.stamp && header.floats == expected.floats) {
      return absl::OkStatus();
    }
    return absl::DataLossError(absl::StrCat("message of rank ", ends_.source, ": expected ",
                                            HeaderLine(expected, call_.text), ", got ",
                                            HeaderLine(header, call_.text)));
  }

  absl::Status Deliver(const Mailbox::Arrival& arrival) const {
    if (call_.payload.output && transport_->pacing == nullptr) {
      const absl::Span<float> place = call_.payload.output();
      if (static_cast<std::int64_t>(place.size()) != arrival.header.floats) {
        return absl::InvalidArgumentError(absl::StrCat(HeaderLine(arrival.header, call_.text),
                                                       ": its place is of ",
                                                       place.size() * sizeof(float), " bytes"));
      }
      std::copy_n(arrival.data.data(), arrival.header.floats, place.begin());
    }
    if (call_.payload.done) call_.payload.done();
    return absl::OkStatus();
  }

  std::shared_ptr<Transport> transport_;
  MessageEnds ends_;
  MessageCall call_;
  bool arrived_ = false;
  std::int64_t ready_ns_ = 0;
  std::int64_t end_ns_ = 0;  // nominal; 0: when it arrives
};

}  // namespace

std::unique_ptr<HostTask> MakeSendTask(std::shared_ptr<Transport> transport, MessageEnds ends,
                                       const MessageCall& call) {
  return std::make_unique<SendTask>(std::move(transport), ends, call);
}

std::unique_ptr<HostTask> MakeReceiveTask(std::shared_ptr<Transport> transport, MessageEnds ends,
                                          const MessageCall& call) {
  return std::make_unique<ReceiveTask>(std::move(transport), ends, call);
}

}  // namespace optimus::executor
