#include "executor/mpi/request_set.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/host/host_device.h"
#include "executor/mpi/mpi_status.h"

namespace optimus::executor {
namespace {

absl::Status CheckCount(std::int64_t count) {
  if (count > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a block of ", count, " elements is too long for one MPI message (2^31)"));
  }
  return absl::OkStatus();
}

}  // namespace

void RequestSet::Add(MPI_Request request, Pending& pending) {
  ++pending.left;
  requests_.push_back(request);
  pending_.push_back(&pending);
}

absl::Status RequestSet::Send(const void* data, std::int64_t count, MPI_Datatype type, int to,
                              int tag, MPI_Comm comm, Pending& pending) {
  OPTIMUS_RETURN_IF_ERROR(CheckCount(count));
  MPI_Request request = MPI_REQUEST_NULL;
  OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Isend, data, static_cast<int>(count), type, to, tag, comm,
                              &request);
  Add(request, pending);
  return absl::OkStatus();
}

absl::Status RequestSet::Receive(void* data, std::int64_t count, MPI_Datatype type, int from,
                                 int tag, MPI_Comm comm, Pending& pending) {
  OPTIMUS_RETURN_IF_ERROR(CheckCount(count));
  MPI_Request request = MPI_REQUEST_NULL;
  OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Irecv, data, static_cast<int>(count), type, from, tag, comm,
                              &request);
  Add(request, pending);
  return absl::OkStatus();
}

absl::Status RequestSet::Cancel(Pending& pending) {
  for (std::size_t i = requests_.size(); i-- > 0;) {
    if (pending_[i] != &pending) {
      continue;
    }
    OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Cancel, &requests_[i]);
    OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Wait, &requests_[i], MPI_STATUS_IGNORE);
    indices_.assign(1, static_cast<int>(i));
    Remove(1);
    --pending.left;
  }
  return absl::OkStatus();
}

void RequestSet::Finish(int index, const MPI_Status& status, int error) {
  Pending& pending = *pending_[static_cast<std::size_t>(index)];
  --pending.left;
  pending.source = status.MPI_SOURCE;
  if (pending.error == MPI_SUCCESS) pending.error = error;
}

// The first `count` of indices_. From the highest down: what moves into a gap is never one of them.
void RequestSet::Remove(int count) {
  std::sort(indices_.begin(), indices_.begin() + count, std::greater<>());
  for (int i = 0; i < count; ++i) {
    const auto gap = static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)]);
    requests_[gap] = requests_.back();
    pending_[gap] = pending_.back();
    requests_.pop_back();
    pending_.pop_back();
  }
}

absl::Status RequestSet::Test() {
  constexpr std::int64_t kRoundNs = 1'000;
  const std::int64_t now = NowNs();
  if (now - last_ns_ < kRoundNs) {
    return absl::OkStatus();
  }
  last_ns_ = now;
  return TestNow();
}

absl::Status RequestSet::TestNow() {
  const int size = static_cast<int>(requests_.size());
  if (size == 0) {
    return absl::OkStatus();
  }
  indices_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int done = 0;
  const int code = MPI_Testsome(size, requests_.data(), &done, indices_.data(), statuses_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
    return MpiStatus(code, "MPI_Testsome");
  }
  if (done == MPI_UNDEFINED) {
    return absl::OkStatus();
  }
  for (int i = 0; i < done; ++i) {
    const auto n = static_cast<std::size_t>(i);
    Finish(indices_[n], statuses_[n], code == MPI_SUCCESS ? MPI_SUCCESS : statuses_[n].MPI_ERROR);
  }
  Remove(done);
  return absl::OkStatus();
}

}  // namespace optimus::executor
