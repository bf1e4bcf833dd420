#pragma once
// How long operations of a Timeline took. Internal to validation; others use Compare.

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/timeline.h"

namespace optimus::validation {

// A collective lasts from when the last of its members is there: in a simulation all of them start
// it then, in a run each records when it came itself, and the wait is not work. Members that the
// timeline does not record are left out.
class SpanTimes {
 public:
  // Both must outlive it. `schedule` is that of the timeline, whose spans are ordered.
  SpanTimes(const ir::Schedule& schedule, const ir::Timeline& timeline);
  // Of a span of the timeline, whose rank and operation the Schedule has.
  Picoseconds TimeOf(const ir::Span& span) const;

 private:
  Picoseconds StartOfCollective(const ir::Program& program, const ir::Span& span) const;
  const ir::Span* Find(std::int32_t rank, std::uint32_t operation) const;

  const ir::Schedule& schedule_;
  absl::flat_hash_map<std::int32_t, absl::Span<const ir::Span>> ranks_;
  // By program and operation: how many collectives of the same group come before it.
  std::vector<std::vector<std::uint32_t>> issue_;
  // By program and group: its collectives, in order of issue.
  std::vector<std::vector<std::vector<std::uint32_t>>> collectives_;
};

// Index into Schedule::programs of what `rank` runs.
std::int32_t ProgramOfRank(const ir::Schedule& schedule, std::int32_t rank);

// The spans of the first rank, taken off `spans`, which are ordered by rank and not empty.
absl::Span<const ir::Span> TakeRank(absl::Span<const ir::Span>& spans);

}  // namespace optimus::validation
