#pragma once
// Collectives of a group over NCCL, on the GPU's memory that means nothing; messages of the world.
// In checked steps the members' stamps are gathered before the data moves.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/cuda/cuda_device.h"
#include "executor/cuda/memory.h"
#include "executor/cuda/message_routes.h"
#include "executor/cuda/nccl_comm.h"
#include "executor/runtime/communicator.h"

namespace optimus::executor::cuda {

class CudaCommunicator : public Communicator {
 public:
  // Of the world: `base` (null: one rank) is what groups are split from. Called by all ranks at
  // once. `device` must outlive it.
  static absl::StatusOr<std::unique_ptr<CudaCommunicator>> CreateWorld(
      CudaDevice& device, std::unique_ptr<NcclComm> base, int rank, int size);
  ~CudaCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::StatusOr<std::unique_ptr<Communicator>> Split(absl::Span<const std::int32_t> ranks,
                                                      const std::string& name) override;
  absl::Status Connect(const ir::Schedule& schedule) override;
  // Nothing to do: routes receive on streams of their own, as early as the host issues them.
  absl::Status Expect(absl::Span<const MessageCall> calls) override;
  absl::Status Collective(ir::Stream stream, const CollectiveCall& call) override;
  absl::Status Send(ir::Stream stream, const MessageCall& call) override;
  absl::Status Receive(ir::Stream stream, const MessageCall& call) override;

 private:
  CudaCommunicator(CudaDevice& device, std::unique_ptr<NcclComm> comm, std::string name, int rank,
                   int size)
      : device_(device), comm_(std::move(comm)), name_(std::move(name)), rank_(rank), size_(size) {}
  // `comm` is null for a group of one rank.
  static absl::StatusOr<std::unique_ptr<CudaCommunicator>> Create(CudaDevice& device,
                                                                  std::unique_ptr<NcclComm> comm,
                                                                  std::string name, int rank,
                                                                  int size);
  absl::Status GatherStamps(cudaStream_t stream) const;
  absl::Status Move(const CollectiveWork& work, const void* in, void* out,
                    cudaStream_t stream) const;
  absl::Status CheckMessage(const MessageCall& call) const;

  CudaDevice& device_;
  std::unique_ptr<NcclComm> base_;  // of the world
  std::unique_ptr<NcclComm> comm_;
  std::string name_;
  int rank_, size_;
  int watch_ = -1;
  DeviceMemory<StampValue> stamps_;        // the members', then this rank's
  std::unique_ptr<MessageRoutes> routes_;  // of the world
};

}  // namespace optimus::executor::cuda
