#pragma once
// A collective as direct exchanges: which block goes to and comes from which peer. Every member
// sends to every other at once; on the shared memory of a node, and between the ports of a switch,
// that takes one round where a ring takes size - 1. An all-reduce takes two (reduce-scatter, then
// all-gather), and so does a broadcast to more than one.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/kernel.h"

namespace optimus::executor {

// Where a block lies: what the rank puts in, its result, or parts of others that are to be summed.
enum class Place : std::uint8_t { kInput, kOutput, kScratch };

struct Block {
  int peer = 0;
  Place place = Place::kInput;
  std::int64_t offset = 0, floats = 0;  // floats > 0
};

struct ExchangeRound {
  std::vector<Block> sends, receives;
};

struct ExchangePlan {
  std::int64_t input = 0, output = 0, scratch = 0;  // floats of each place
  std::vector<ExchangeRound> rounds;
  // A part of the input that is a part of the output: input offset, output offset, floats. It is
  // copied where the data means something.
  std::int64_t own_input = 0, own_output = 0, own_floats = 0;
  // After the first round: output[sum_output + i] = sum over members j, in order, of
  // input[sum_input + i] where j is the rank itself, else scratch[(j's place among the others) *
  // sum_floats + i].
  std::int64_t sum_input = 0, sum_output = 0, sum_floats = 0;
};

// `floats`: what CollectiveWork::bytes counts (all-gather: the gathered output). INVALID_ARGUMENT
// where all-gather, reduce-scatter or all-to-all is of a number that `size` does not divide.
// Broadcast: from rank 0; its input is empty elsewhere.
absl::StatusOr<ExchangePlan> PlanExchange(CollectiveKind kind, std::int64_t floats, int rank,
                                          int size);

// The least number of floats that is at least `bytes`.
constexpr std::int64_t FloatsOf(Bytes bytes) {
  return bytes.value() / 4 + (bytes.value() % 4 == 0 ? 0 : 1);
}
// The least number of floats that is at least `bytes` and that PlanExchange takes.
std::int64_t FloatsFor(CollectiveKind kind, Bytes bytes, int size);

}  // namespace optimus::executor
