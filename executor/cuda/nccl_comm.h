#pragma once
// NCCL communicators. The first one, of the world, is made in NCCL's non-blocking mode, and so is
// every one that is split off: connecting is asked for until a deadline, so it never hangs in
// silence. Those that are split off carry data and are blocking ones: in the other mode NCCL would
// start a thread for every call. (A blocking call only enqueues, once all is connected.)

#include <nccl.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "executor/cuda/libraries.h"

namespace optimus::executor::cuda {

// For connecting: node after node may be late.
inline constexpr absl::Duration kNcclPatience = absl::Minutes(3);

class NcclComm {
 public:
  // Of the world, to be split. Called by all `ranks` at once, each on its own GPU.
  static absl::StatusOr<std::unique_ptr<NcclComm>> Init(const Nccl& nccl, int ranks, int rank,
                                                        const ncclUniqueId& id);
  // Called by all ranks of this one at once. Those of one color get a communicator, ordered by key;
  // color NCCL_SPLIT_NOCOLOR: null.
  absl::StatusOr<std::unique_ptr<NcclComm>> Split(int color, int key, const std::string& name);
  // Waits for all members to end it, or ends it by force.
  void Close(bool abort);
  ~NcclComm() { Close(/*abort=*/true); }
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  ncclComm_t get() const { return comm_; }
  const Nccl& nccl() const { return nccl_; }

  // Of a call that enqueued something: waits until that is done. `what` names it.
  absl::Status Await(ncclResult_t result, const std::string& what,
                     absl::Duration patience = kNcclPatience) const;
  // What went wrong meanwhile, for example because another rank is gone.
  absl::Status AsyncError() const;

 private:
  NcclComm(const Nccl& nccl, std::string name) : nccl_(nccl), name_(std::move(name)) {}
  absl::Status Error(ncclResult_t result, const std::string& what) const;

  const Nccl& nccl_;
  std::string name_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace optimus::executor::cuda
