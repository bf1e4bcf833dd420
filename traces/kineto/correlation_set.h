#pragma once
#include <array>
#include <cstdint>

#include "absl/container/flat_hash_map.h"

namespace optimus::traces {

// Correlation ids of a whole file: CUPTI counts them up, so a bit each is enough.
class CorrelationSet {
 public:
  void Insert(std::int64_t id) { bits_[id >> 8][Word(id)] |= Bit(id); }
  bool Contains(std::int64_t id) const {
    const auto found = bits_.find(id >> 8);
    return found != bits_.end() && (found->second[Word(id)] & Bit(id)) != 0;
  }

 private:
  static std::size_t Word(std::int64_t id) { return static_cast<std::size_t>(id >> 6 & 3); }
  static std::uint64_t Bit(std::int64_t id) { return std::uint64_t{1} << (id & 63); }
  absl::flat_hash_map<std::int64_t, std::array<std::uint64_t, 4>> bits_;
};

}  // namespace optimus::traces
