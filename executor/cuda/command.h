#pragma once
// What one rank's step asks of the GPU, in order of issue. It is put together before the step and
// issued in it.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "executor/runtime/device.h"

namespace optimus::executor::cuda {

struct Command {
  enum class Kind : std::uint8_t { kWait, kRecord, kWork };
  Kind kind = Kind::kWork;
  int stream = 0;   // index into the device's streams: those of ir::Stream, then further ones
  Event event = 0;  // kWait, kRecord
  // kWork:
  const std::string* name = nullptr;  // for NVTX; outlives the step; may be null
  int launches = 1;                   // on the GPU, about
  std::uint64_t signature = 0;        // what it does and where: equal for equal work
  std::function<absl::Status(cudaStream_t)> run;
};

// Whether a graph that was captured from `a` does what `b` asks.
bool SameWork(const std::vector<Command>& a, const std::vector<Command>& b);

// FNV-1a over words.
class Signature {
 public:
  Signature& Add(std::uint64_t word) {
    for (int byte = 0; byte < 8; ++byte) {
      hash_ = (hash_ ^ (word >> (8 * byte) & 0xffU)) * 0x100000001b3ULL;
    }
    return *this;
  }
  Signature& Add(const void* pointer) { return Add(reinterpret_cast<std::uintptr_t>(pointer)); }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace optimus::executor::cuda
