#include "executor/cuda/arena.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "executor/cuda/kernels.h"

namespace optimus::executor::cuda {
namespace {

// 20 times the L2 cache of an H100.
constexpr std::int64_t kUsual = std::int64_t{1} << 30;
constexpr std::uint32_t kSeed = 20250705;

// On a card that others use as well, a sixteenth of what is free.
std::int64_t UsualSize() {
  std::size_t free = 0;
  std::size_t total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return kUsual;
  return std::min<std::int64_t>(kUsual, Regions::Align(static_cast<std::int64_t>(free / 16)));
}

}  // namespace

absl::Status Arena::Grow(DeviceMemory<char>& memory, Regions& regions, std::int64_t bytes) {
  if (bytes <= regions.capacity()) return absl::OkStatus();
  bytes = Regions::Align(std::max(bytes, UsualSize()));
  memory.reset();
  regions = Regions();
  ++generation_;
  absl::StatusOr<DeviceMemory<char>> larger = AllocateOnDevice<char>(bytes);
  if (!larger.ok()) {
    return {larger.status().code(),
            absl::StrFormat("%s: %.2f GiB for what kernels and transfers read or write; hint: use "
                            "a smaller model, or more tensor parallelism",
                            std::string(larger.status().message()),
                            static_cast<double>(bytes) / (1 << 30))};
  }
  memory = *std::move(larger);
  regions = Regions(bytes);
  OPTIMUS_CUDA_RETURN_IF_ERROR(LaunchRandom(memory.get(), bytes / 2, kSeed, blocks_, stream_));
  OPTIMUS_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_));
  return absl::OkStatus();
}

absl::Status Arena::Reserve(std::int64_t inputs, std::int64_t outputs) {
  OPTIMUS_RETURN_IF_ERROR(Grow(inputs_, input_regions_, std::max<std::int64_t>(inputs, 1)));
  return Grow(outputs_, output_regions_, std::max<std::int64_t>(outputs, 1));
}

absl::StatusOr<std::int64_t> Arena::TakeInput(std::int64_t bytes) {
  OPTIMUS_RETURN_IF_ERROR(Grow(inputs_, input_regions_, bytes));
  return input_regions_.Take(bytes);
}

absl::StatusOr<std::int64_t> Arena::TakeOutput(std::int64_t bytes) {
  OPTIMUS_RETURN_IF_ERROR(Grow(outputs_, output_regions_, bytes));
  return output_regions_.Take(bytes);
}

void Arena::Restart() {
  input_regions_.Restart();
  output_regions_.Restart();
}

}  // namespace optimus::executor::cuda
