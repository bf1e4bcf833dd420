#include "executor/cpu/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "executor/cpu/sizes.h"

namespace optimus::executor {
namespace {

constexpr std::int64_t kMib = 1 << 20;
constexpr std::int64_t kHugePage = 2 * kMib;
// Between two operands, beside the alignment: sizes are often powers of two, and without it the
// operands of one kernel would fall into the same sets of the cache.
constexpr std::int64_t kGap = 192;

absl::StatusOr<std::byte*> Map(Bytes bytes, const char* what) {
  void* data = mmap(nullptr, static_cast<std::size_t>(bytes.value()), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the system refuses ", bytes.value(), " bytes for ", what,
                     "; hint: see ulimit -v, and what else runs on this machine"));
  }
  // Where the system has huge pages: fewer address translations are missed. No harm if not.
  (void)madvise(data, static_cast<std::size_t>(bytes.value()), MADV_HUGEPAGE);
  return static_cast<std::byte*>(data);
}

// A page of values between -0.5 and 0.5 with 7 bits of mantissa, so that each is a bf16 as well.
std::vector<std::byte> MakeTile(Element element) {
  std::vector<std::byte> tile(kMib);
  std::uint32_t state = 0x9e3779b9;
  const std::int64_t size = SizeOf(element);
  for (std::int64_t i = 0; i < kMib; i += size) {
    state = state * 1664525 + 1013904223;  // Numerical Recipes' generator: any would do
    const float value = static_cast<float>(static_cast<int>(state >> 24) - 128) / 256;
    std::array<std::byte, 4> bits{};
    std::memcpy(bits.data(), &value, 4);
    std::memcpy(tile.data() + i, bits.data() + (4 - size), static_cast<std::size_t>(size));
  }
  return tile;
}

void Fill(std::byte* data, Bytes bytes, const std::vector<std::byte>& tile) {
  for (std::int64_t i = 0; i < bytes.value(); i += kMib) {
    const std::int64_t count = std::min(kMib, bytes.value() - i);
    std::memcpy(data + i, tile.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

std::byte* Arena::Region::Next(Bytes bytes) {
  if (next + bytes.value() > size.value()) next = 0;
  std::byte* place = data + next;
  next += RoundUp(bytes.value(), 64) + kGap;
  return place;
}

absl::StatusOr<Arena> Arena::Create(Bytes inputs, Bytes outputs, Element element) {
  Arena arena;
  for (const auto& [region, size] :
       {std::pair(&arena.inputs_, inputs), std::pair(&arena.outputs_, outputs)}) {
    const Bytes rounded(RoundUp(std::max(size.value(), std::int64_t{1}), kHugePage));
    absl::StatusOr<std::byte*> data = Map(rounded, "the operands of kernels");
    if (!data.ok()) return data.status();
    region->data = *data;
    region->size = rounded;
  }
  Fill(arena.inputs_.data, arena.inputs_.size, MakeTile(element));
  Fill(arena.outputs_.data, arena.outputs_.size, std::vector<std::byte>(kMib));
  return arena;
}

Arena::Arena(Arena&& other) noexcept
    : inputs_(std::exchange(other.inputs_, {})), outputs_(std::exchange(other.outputs_, {})) {}
Arena& Arena::operator=(Arena&& other) noexcept {
  if (this == &other) return *this;
  Release();
  inputs_ = std::exchange(other.inputs_, {});
  outputs_ = std::exchange(other.outputs_, {});
  return *this;
}
Arena::~Arena() { Release(); }

void Arena::Release() {
  for (Region* region : {&inputs_, &outputs_}) {
    if (region->data != nullptr)
      munmap(region->data, static_cast<std::size_t>(region->size.value()));
    *region = {};
  }
}

bool Arena::OutputsAreFinite() const {
  for (std::int64_t i = 0; i < outputs_.size.value(); i += 4) {
    float value = 0;
    std::memcpy(&value, outputs_.data + i, 4);
    if (!std::isfinite(value)) return false;
  }
  return true;
}

absl::Status CheckAvailable(Bytes bytes) {
  const absl::StatusOr<std::byte*> data = Map(bytes, "the library of kernels");
  if (data.ok()) munmap(*data, static_cast<std::size_t>(bytes.value()));
  return data.status();
}

Bytes UsualRegion(Bytes last_level_cache, Bytes memory_share) {
  const std::int64_t both =
      std::clamp(8 * last_level_cache.value(), 256 * kMib, std::int64_t{2048} * kMib);
  return Bytes(std::min(both, memory_share.value() / 4) / 2);
}

}  // namespace optimus::executor
