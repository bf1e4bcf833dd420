#pragma once
// The ops of one micro-batch on all stages of an encoder pipeline, in one direction, as one flat
// graph: what the list scheduler walks.

#include <cstdint>
#include <vector>

#include "schedule/bubble/list_slots.h"
#include "schedule/bubble/problem.h"

namespace optimus::bubble {

enum class Direction : std::uint8_t { kForward, kBackward };

// Which op of one micro-batch is preferred where several are ready. The variants give different
// schedules; none is best for all problems.
enum class OpOrder : std::uint8_t {
  kChainsOuter,  // finish the first chain first
  kPairsOuter,   // two chains advance evenly, then the next two
  kLayersOuter,  // all chains of a micro-batch advance evenly
};
inline constexpr int kOpOrders = 3;

struct WorkGraph {
  struct Edge {
    std::uint32_t to = 0;
    std::int16_t hop = -1;  // index into WorkGraph::hops: a message; -1: none
  };
  // A message between these two encoder stages, past stages without work.
  struct Hop {
    std::int16_t lower = 0, upper = 0;
    friend bool operator==(const Hop&, const Hop&) = default;
  };
  std::int32_t stages = 0;
  std::uint32_t nodes = 0;
  std::vector<std::uint32_t> first_node;  // by stage, and the end: ops of a stage keep their order
  std::vector<Ps> duration;
  std::vector<std::uint16_t> resource;    // 2 * stage + (1 for the link)
  std::vector<std::uint32_t> first_edge;  // by node, and the end
  std::vector<Edge> edges;
  std::vector<Hop> hops;
  Hop entry;  // between the stage next to the LLM that has ops, and the last stage: often the same
  std::vector<std::uint32_t> predecessors;     // how many, by node
  std::vector<std::uint32_t> sources;          // nodes without
  std::vector<std::uint32_t> rank[kOpOrders];  // by OpOrder and node; smaller goes first
  std::vector<Ps> stage_compute;               // by stage
  // By stage: the least that must have gone before any op of it, and that follows after any.
  std::vector<Ps> stage_lead, stage_tail;
  Ps length = 0;  // longest path
};

// Edges: dependencies, the order of ops of one chain on one resource, and messages (an op with an
// input part waits for the op that completes that part on the stage before). `mirrored`: time runs
// backwards, so that every edge is turned round. Lengths of paths take the shortest hop.
WorkGraph MakeGraph(const EncoderWork& encoder, Direction direction, bool mirrored);

// How long the message takes on the block of stages `block`.
Ps HopTime(const EncoderWork& encoder, Direction direction, WorkGraph::Hop hop, std::int32_t block);

}  // namespace optimus::bubble
