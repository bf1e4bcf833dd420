#pragma once
// Messages between ranks over NCCL. Each route (source, destination and their streams) has a
// communicator of two ranks, and receives on a stream of its own: NCCL's send waits on the GPU for
// its receive, and a receive must not wait for anything but the message before it, or an order that
// is right for messages with buffers could deadlock. The schedule's receive stream waits for the
// arrival.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/cuda/cuda_device.h"
#include "executor/cuda/memory.h"
#include "executor/cuda/nccl_comm.h"
#include "executor/runtime/communicator.h"

namespace optimus::executor::cuda {

class MessageRoutes {
 public:
  // `world` is null for a world of one rank. All must outlive this.
  MessageRoutes(CudaDevice& device, NcclComm* world, int rank)
      : device_(device), world_(world), rank_(rank) {}
  ~MessageRoutes();
  MessageRoutes(const MessageRoutes&) = delete;
  MessageRoutes& operator=(const MessageRoutes&) = delete;

  // Called by all ranks at once. Routes that are there already, of another schedule, are kept.
  absl::Status Connect(const ir::Schedule& schedule);
  absl::Status Send(ir::Stream stream, const MessageCall& call);
  absl::Status Receive(ir::Stream stream, const MessageCall& call);

 private:
  struct Way {
    Route route;
    std::unique_ptr<NcclComm> comm;
    int watch = -1;
    int stream = -1;                  // at the receiver
    DeviceMemory<StampValue> header;  // the stamp of the message that is under way
    std::string name;                 // for NVTX
  };
  absl::Status Open(const Route& route, std::unique_ptr<NcclComm> comm);
  absl::Status Exchange(const Way& way) const;
  absl::Status WaitForStream(const Way& way, cudaStream_t stream) const;
  absl::StatusOr<Way*> Find(bool send, ir::Stream stream, const MessageCall& call);
  absl::Status Enqueue(Way& way, int stream, const MessageCall& call);
  absl::Status Transfer(const Way& way, void* data, std::int64_t count, bool header,
                        cudaStream_t stream) const;

  CudaDevice& device_;
  NcclComm* world_;
  int rank_;
  std::map<Route, Way> ways_;                 // those of this rank
  std::vector<Route> connected_;              // of all ranks, sorted
  std::map<std::int32_t, Route> of_message_;  // of the schedule that was connected last
};

}  // namespace optimus::executor::cuda
