#include "executor/cuda/split_rounds.h"

#include <algorithm>

namespace optimus::executor::cuda {

std::vector<std::vector<std::size_t>> SplitRounds(absl::Span<const Route> routes) {
  std::int32_t ranks = 0;
  for (const Route& route : routes) {
    ranks = std::max({ranks, route.source + 1, route.destination + 1});
  }
  std::vector<std::vector<std::size_t>> rounds;
  // By round: which ranks it has.
  std::vector<std::vector<bool>> taken;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    const auto source = static_cast<std::size_t>(routes[i].source);
    const auto destination = static_cast<std::size_t>(routes[i].destination);
    std::size_t round = 0;
    while (round < rounds.size() && (taken[round][source] || taken[round][destination])) ++round;
    if (round == rounds.size()) {
      rounds.emplace_back();
      taken.emplace_back(static_cast<std::size_t>(ranks), false);
    }
    rounds[round].push_back(i);
    taken[round][source] = true;
    taken[round][destination] = true;
  }
  return rounds;
}

}  // namespace optimus::executor::cuda
