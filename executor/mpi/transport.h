#pragma once
// What all communicators of one device share.

#include <cstdint>
#include <mutex>

#include "absl/status/status.h"
#include "executor/host/host_device.h"
#include "executor/mpi/mailbox.h"
#include "executor/mpi/memory_ring.h"
#include "executor/mpi/mpi_state.h"
#include "executor/mpi/pacing.h"
#include "executor/mpi/request_set.h"

namespace optimus::executor {

inline constexpr std::int32_t kWorldGroup = 0;

struct Transport {
  Transport(MpiState& mpi_state, HostDevice& host_device, Pacing* transfer_pacing)
      : mpi(mpi_state),
        device(host_device),
        pacing(transfer_pacing),
        mailbox(mpi.messages, requests, results, transfer_pacing == nullptr) {}

  // Listens to messages, and has the device's threads poll. Close: no more.
  absl::Status Open();
  void Close();
  // Room for transfers of so many floats that mean nothing; before the step. RESOURCE_EXHAUSTED.
  absl::Status Reserve(std::int64_t floats);
  // One round of polling. Under `mutex`. After an error always that error.
  absl::Status Test();
  // Moments of this host's clock on the wire, and back.
  std::int64_t ToWire(std::int64_t time_ns) const { return time_ns + mpi.clock_offset_ns; }
  std::int64_t FromWire(std::int64_t time_ns) const { return time_ns - mpi.clock_offset_ns; }

  MpiState& mpi;
  HostDevice& device;
  Pacing* const pacing;

  // Of what follows: the communication thread uses it in a step, the caller between steps.
  std::mutex mutex;
  RequestSet requests;
  MemoryRing inputs, results;  // what is sent, and what is received or computed
  Mailbox mailbox;
  std::int32_t next_group = kWorldGroup + 1;
  absl::Status error;
};

// Tags of `MpiState::groups`.
enum class GroupTag : int { kHeader = 0, kPayload = 1, kAgreement = 2 };
constexpr int TagOf(std::int32_t group, GroupTag tag) { return group * 4 + static_cast<int>(tag); }

}  // namespace optimus::executor
