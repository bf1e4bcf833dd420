#include "executor/cuda/nccl_comm.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace optimus::executor::cuda {
namespace {

constexpr absl::Duration kPoll = absl::Microseconds(50);
constexpr absl::Duration kClosePatience = absl::Seconds(10);

ncclConfig_t Config(const std::string& name, bool blocking) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking ? 1 : 0;
  config.commName = name.c_str();
  return config;
}

}  // namespace

absl::Status NcclComm::Error(ncclResult_t result, const std::string& what) const {
  const char* last = nccl_.GetLastError(comm_);
  const std::string detail = last == nullptr || *last == '\0' ? "" : absl::StrCat(": ", last);
  return absl::UnavailableError(absl::StrCat("nccl: ", what, " of group '", name_,
                                             "': ", nccl_.GetErrorString(result), detail,
                                             "; hint: NCCL_DEBUG=INFO says more"));
}

absl::Status NcclComm::Await(ncclResult_t result, const std::string& what,
                             absl::Duration patience) const {
  if (result == ncclSuccess) return absl::OkStatus();
  const absl::Time deadline = absl::Now() + patience;
  while (result == ncclInProgress) {
    const ncclResult_t asked = nccl_.CommGetAsyncError(comm_, &result);
    if (asked != ncclSuccess) return Error(asked, what);
    if (result != ncclInProgress) break;
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("nccl: ", what, " of group '", name_, "' has not ended after ",
                       absl::FormatDuration(patience),
                       "; hint: is every rank there? NCCL_DEBUG=INFO says more"));
    }
    absl::SleepFor(kPoll);
  }
  return result == ncclSuccess ? absl::OkStatus() : Error(result, what);
}

absl::Status NcclComm::AsyncError() const {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = nccl_.CommGetAsyncError(comm_, &state);
  if (asked != ncclSuccess) return Error(asked, "a transfer");
  if (state != ncclSuccess && state != ncclInProgress) return Error(state, "a transfer");
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<NcclComm>> NcclComm::Init(const Nccl& nccl, int ranks, int rank,
                                                         const ncclUniqueId& id) {
  std::unique_ptr<NcclComm> comm(new NcclComm(nccl, "world"));
  ncclConfig_t config = Config(comm->name_, /*blocking=*/false);
  const ncclResult_t result = nccl.CommInitRankConfig(&comm->comm_, ranks, id, rank, &config);
  OPTIMUS_RETURN_IF_ERROR(comm->Await(result, "connecting the ranks"));
  return comm;
}

absl::StatusOr<std::unique_ptr<NcclComm>> NcclComm::Split(int color, int key,
                                                          const std::string& name) {
  std::unique_ptr<NcclComm> part(new NcclComm(nccl_, name));
  ncclConfig_t config = Config(part->name_, /*blocking=*/true);
  const ncclResult_t result = nccl_.CommSplit(comm_, color, key, &part->comm_, &config);
  if (absl::Status made = Await(result, absl::StrCat("splitting off '", name, "'")); !made.ok()) {
    static_cast<void>(part.release());  // lost, not freed: NCCL may still write to it
    return made;
  }
  if (color == NCCL_SPLIT_NOCOLOR) return nullptr;
  if (part->comm_ == nullptr) return part->Error(ncclInternalError, "splitting");
  OPTIMUS_RETURN_IF_ERROR(part->Await(ncclInProgress, "connecting the ranks"));
  return part;
}

void NcclComm::Close(bool abort) {
  if (comm_ == nullptr) return;
  if (!abort) {
    const absl::Status finished = Await(nccl_.CommFinalize(comm_), "closing", kClosePatience);
    abort = !finished.ok();
  }
  if (abort) {
    nccl_.CommAbort(comm_);
  } else {
    nccl_.CommDestroy(comm_);
  }
  comm_ = nullptr;
}

}  // namespace optimus::executor::cuda
