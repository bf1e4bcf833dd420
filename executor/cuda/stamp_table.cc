#include "executor/cuda/stamp_table.h"

#include <atomic>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/cuda/stamp_words.h"

namespace optimus::executor::cuda {
namespace {

StampValue ValueOf(const Stamp& stamp) { return std::bit_cast<StampValue>(ToWords(stamp)); }

std::string Describe(const StampText* text, const Stamp& stamp) {
  if (text != nullptr) return (*text)(stamp);
  if (stamp == Stamp()) return "nothing";
  return absl::StrCat("rank ", stamp.rank, " operation ", stamp.operation, " step ", stamp.step);
}

}  // namespace

absl::Status StampTable::Reserve(std::uint32_t slots) {
  if (error_ == nullptr) {
    OPTIMUS_ASSIGN_OR_RETURN(error_, AllocateOnHost<StampError>(sizeof(StampError)));
    std::memset(error_.get(), 0, sizeof(StampError));
    OPTIMUS_ASSIGN_OR_RETURN(claimed_, AllocateOnDevice<std::uint32_t>(sizeof(std::uint32_t)));
    OPTIMUS_CUDA_RETURN_IF_ERROR(cudaMemset(claimed_.get(), 0, sizeof(std::uint32_t)));
  }
  if (slots <= slot_count_) return absl::OkStatus();
  slots_.reset();
  slot_count_ = 0;
  OPTIMUS_ASSIGN_OR_RETURN(
      slots_, AllocateOnDevice<StampValue>(std::int64_t{slots} * std::int64_t{sizeof(StampValue)}));
  slot_count_ = slots;
  return absl::OkStatus();
}

// A default Stamp, "nothing", is all ones.
absl::Status StampTable::Clear(cudaStream_t stream) {
  static_assert(std::bit_cast<StampWords>(Stamp())[0] == 0xffffffffU &&
                std::bit_cast<StampWords>(Stamp())[6] == 0xffffffffU);
  if (slot_count_ == 0) return absl::OkStatus();
  return CudaStatus(
      cudaMemsetAsync(slots_.get(), 0xff, std::size_t{slot_count_} * sizeof(StampValue), stream),
      "cudaMemsetAsync");
}

std::uint32_t StampTable::AddCheck(const Stamp& expected, const StampText* text) {
  checks_.push_back({expected, text});
  return static_cast<std::uint32_t>(checks_.size() - 1);
}

absl::Status StampTable::LaunchCheck(std::uint32_t check, const StampValue* stamps, int count,
                                     std::uint32_t mask, cudaStream_t stream) const {
  return CudaStatus(LaunchCheckStamps(stamps, count, ValueOf(checks_[check].expected), mask, check,
                                      claimed_.get(), error_.get(), stream),
                    "check of a stamp");
}

absl::Status StampTable::LaunchWrite(StampValue* slot, const Stamp& stamp, cudaStream_t stream) {
  return CudaStatus(LaunchWriteStamp(slot, ValueOf(stamp), stream), "writing a stamp");
}

absl::Status StampTable::error() const {
  if (error_ == nullptr || error_->state == 0) return absl::OkStatus();
  std::atomic_thread_fence(std::memory_order_acquire);
  StampWords words = {};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = error_->found[i];
  const std::uint32_t number = error_->check;
  if (number >= checks_.size()) return absl::InternalError("cuda: a stamp check of no number");
  const Check& check = checks_[number];
  return absl::DataLossError(
      absl::StrCat("wrong data: expected the output of ", Describe(check.text, check.expected),
                   "; found ", Describe(check.text, FromWords(words)),
                   "; hint: a dependency is missing, or the order is not the schedule's"));
}

}  // namespace optimus::executor::cuda
