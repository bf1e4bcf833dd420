#pragma once
// What collectives mean, computed in one place: the slow twin of the exchanges, for tests.

#include <array>
#include <cstdint>
#include <vector>

#include "base/kernel.h"

namespace optimus::executor {

inline constexpr std::array kCollectiveKinds = {
    CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
    CollectiveKind::kBroadcast, CollectiveKind::kAllToAll};

// By rank, what it puts in: small whole numbers, so that sums are exact in any order. `floats` as
// PlanExchange counts them.
inline std::vector<std::vector<float>> PlainInputs(CollectiveKind kind, std::int64_t floats,
                                                   int size) {
  std::vector<std::vector<float>> inputs;
  for (int rank = 0; rank < size; ++rank) {
    std::int64_t count = kind == CollectiveKind::kAllGather ? floats / size : floats;
    if (kind == CollectiveKind::kBroadcast && rank != 0) count = 0;
    std::vector<float>& input = inputs.emplace_back();
    for (std::int64_t i = 0; i < count; ++i) {
      input.push_back(static_cast<float>((i * 7 + std::int64_t{rank} * 1009) % 4093));
    }
  }
  return inputs;
}

// By rank, what comes out.
inline std::vector<std::vector<float>> PlainCollective(
    CollectiveKind kind, const std::vector<std::vector<float>>& inputs) {
  const std::size_t size = inputs.size();
  const std::size_t part = inputs[0].size() / size;
  std::vector<float> gathered, sum(inputs[0].size(), 0);
  for (const std::vector<float>& input : inputs) {
    gathered.insert(gathered.end(), input.begin(), input.end());
    for (std::size_t i = 0; i < input.size(); ++i) sum[i] += input[i];
  }
  std::vector<std::vector<float>> outputs;
  for (std::size_t rank = 0; rank < size; ++rank) {
    std::vector<float> output = kind == CollectiveKind::kAllGather   ? gathered
                                : kind == CollectiveKind::kBroadcast ? inputs[0]
                                                                     : sum;
    if (kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllToAll) output.clear();
    for (std::size_t i = 0; i < part && kind == CollectiveKind::kReduceScatter; ++i) {
      output.push_back(sum[rank * part + i]);
    }
    for (std::size_t j = 0; j < size && kind == CollectiveKind::kAllToAll; ++j) {
      for (std::size_t i = 0; i < part; ++i) output.push_back(inputs[j][rank * part + i]);
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace optimus::executor
