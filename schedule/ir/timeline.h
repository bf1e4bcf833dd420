#pragma once
// What a Runner returns: when every operation ran, and where every GPU's time went.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace optimus::ir {

// Why the compute stream of a GPU was idle.
enum class BubbleClass : std::uint8_t {
  kDpAllGather,
  kDpReduceScatter,
  kPpWarmup,    // waiting for the pipeline before the rank's first forward
  kPpCooldown,  // waiting for the other stages after the rank's last backward
  kPpOther,     // any other dependency
  kTp,
};
inline constexpr int kBubbleClassCount = 6;
const char* ToString(BubbleClass bubble);  // JSON names without "_s": "dp_all_gather", ...

// compute + optimizer + bubbles = step, exactly.
struct RankAccount {
  Picoseconds compute;
  Picoseconds optimizer;
  std::array<Picoseconds, kBubbleClassCount> bubbles{};
  Picoseconds total() const;
  friend bool operator==(const RankAccount&, const RankAccount&) = default;
};

struct Span {
  std::int32_t rank = 0;        // global rank of the GPU (or of the first GPU of the entity)
  std::uint32_t operation = 0;  // id in the program of the rank's stage and lane
  Picoseconds start, end;
  friend bool operator==(const Span&, const Span&) = default;
};

// One simulated or measured entity: a GPU, a TP group or a folded pipeline stage.
struct EntityAccount {
  std::int32_t rank = 0;  // its first GPU
  std::int32_t stage = 0;
  std::int32_t gpus = 1;  // how many GPUs it stands for
  RankAccount account;
  std::int32_t lane = 0;  // of its GPUs; 0 where the Schedule has one lane
  friend bool operator==(const EntityAccount&, const EntityAccount&) = default;
};

struct Timeline {
  Picoseconds step;                     // start of the first to the end of the last operation
  std::vector<EntityAccount> entities;  // ordered by rank
  std::vector<Span> spans;      // ordered by (rank, operation); only where recording was asked for
  std::int64_t operations = 0;  // operations run, over all entities
  std::string runner;           // "simgrid", "critical_path", ...
  std::string fidelity;         // "folded", "group", "gpu"; empty where it has no meaning
  std::string fidelity_reason;
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

}  // namespace optimus::ir
