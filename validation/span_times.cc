#include "validation/span_times.h"

#include <algorithm>
#include <cstddef>

#include "schedule/ir/group_members.h"

namespace optimus::validation {

std::int32_t ProgramOfRank(const ir::Schedule& schedule, std::int32_t rank) {
  const ir::Parallelism& world = schedule.world;
  return ir::ProgramIndex(schedule, rank / (world.dp * world.tp),
                          ir::LaneOf(schedule, rank % world.tp));
}

absl::Span<const ir::Span> TakeRank(absl::Span<const ir::Span>& spans) {
  const auto end = std::find_if(spans.begin(), spans.end(), [&](const ir::Span& span) {
    return span.rank != spans.front().rank;
  });
  const auto rank = spans.first(static_cast<std::size_t>(end - spans.begin()));
  spans.remove_prefix(rank.size());
  return rank;
}

SpanTimes::SpanTimes(const ir::Schedule& schedule, const ir::Timeline& timeline)
    : schedule_(schedule) {
  absl::Span<const ir::Span> spans = timeline.spans;
  while (!spans.empty()) {
    const absl::Span<const ir::Span> rank = TakeRank(spans);
    ranks_[rank.front().rank] = rank;
  }
  for (const ir::Program& program : schedule.programs) {
    auto& by_group = collectives_.emplace_back(schedule.groups.size());
    std::vector<std::uint32_t>& issue = issue_.emplace_back(program.operations.size());
    for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
      const ir::Operation& op = program.operations[id];
      if (op.kind != ir::OperationKind::kCollective) continue;
      auto& issued = by_group[schedule.collectives[op.work].group];
      issue[id] = static_cast<std::uint32_t>(issued.size());
      issued.push_back(id);
    }
  }
}

const ir::Span* SpanTimes::Find(std::int32_t rank, std::uint32_t operation) const {
  const auto spans = ranks_.find(rank);
  if (spans == ranks_.end()) return nullptr;
  const auto at =
      std::lower_bound(spans->second.begin(), spans->second.end(), operation,
                       [](const ir::Span& span, std::uint32_t id) { return span.operation < id; });
  return at != spans->second.end() && at->operation == operation ? &*at : nullptr;
}

Picoseconds SpanTimes::StartOfCollective(const ir::Program& program, const ir::Span& span) const {
  const ir::Parallelism& world = schedule_.world;
  const std::int32_t group = schedule_.collectives[program.operations[span.operation].work].group;
  const std::uint32_t place = issue_[ProgramOfRank(schedule_, span.rank)][span.operation];
  const ir::GroupMembers members =
      ir::MembersOf(schedule_, schedule_.groups[group], program.stage,
                    span.rank / world.tp % world.dp, span.rank % world.tp);
  Picoseconds start = span.start;
  for (const std::int32_t rank : ir::RanksOf(schedule_, members)) {
    const auto& issued = collectives_[ProgramOfRank(schedule_, rank)][group];
    if (place >= issued.size()) continue;  // of an invalid Schedule
    const ir::Span* member = Find(rank, issued[place]);
    if (member != nullptr) start = std::max(start, member->start);
  }
  return start;
}

Picoseconds SpanTimes::TimeOf(const ir::Span& span) const {
  const ir::Program& program = schedule_.programs[ProgramOfRank(schedule_, span.rank)];
  const bool collective = program.operations[span.operation].kind == ir::OperationKind::kCollective;
  const Picoseconds start = collective ? StartOfCollective(program, span) : span.start;
  return std::max(span.end - start, Picoseconds(0));  // clocks of ranks may differ a little
}

}  // namespace optimus::validation
