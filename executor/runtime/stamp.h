#pragma once
// The identity of a tensor: which operation of which rank made it. It travels with the tensor and
// the consumer checks it, so that a wrong order or a lost wait stops the run instead of going
// unseen.

#include <cstdint>
#include <string>
#include <type_traits>

#include "schedule/ir/schedule.h"

namespace optimus::executor {

// Same bytes on every rank: it is sent as it is.
struct Stamp {
  std::int32_t rank = -1;       // global rank that ran the producer
  std::int32_t operation = -1;  // the producer's id in its program
  std::int32_t step = -1;       // counted from 0 over warm-up and measured steps
  std::int32_t micro_batch = -1;
  std::int16_t module = -1, layer = -1, chunk = -1, slice = -1;
  std::int16_t phase = -1;
  std::int16_t work = -1;  // Operation::work, modulo 2^15: tells collectives of one tag apart
  friend bool operator==(const Stamp&, const Stamp&) = default;
};
static_assert(std::is_trivially_copyable_v<Stamp> && sizeof(Stamp) == 28);

// The stamp of what `operation` of `program`, run by `rank`, makes in `step`.
Stamp StampOf(const ir::Program& program, std::uint32_t operation, int rank, int step);

// Two members of one collective issue it each under an operation id and rank of their own; all else
// agrees. (Where members of a valid Schedule tag one collective differently, because they hold
// different parts of what it is about, the runtime gives all the tag of the first.)
bool SameCollective(const Stamp& a, const Stamp& b);

// "rank 3: llm layer 2 micro-batch 1 backward qkv_dgrad (operation 17, step 4)"; "nothing" for a
// default stamp. Safe for stamps that hold any numbers.
std::string Describe(const ir::Schedule& schedule, const Stamp& stamp);

}  // namespace optimus::executor
