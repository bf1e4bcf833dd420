#include "executor/runtime/channels.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedule/ir/group_members.h"

namespace optimus::executor {
namespace {

// Ids of the collectives of one program, by group, in order of issue.
using Issued = std::vector<std::vector<std::uint32_t>>;

Issued IssuedByGroup(const ir::Schedule& schedule, const ir::Program& program) {
  Issued issued(schedule.groups.size());
  for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
    const ir::Operation& op = program.operations[id];
    if (op.kind != ir::OperationKind::kCollective) continue;
    issued[schedule.collectives[op.work].group].push_back(id);
  }
  return issued;
}

class ChannelFinder {
 public:
  explicit ChannelFinder(const ir::Schedule& schedule) : schedule_(schedule) {
    for (const ir::Program& program : schedule.programs) {
      issued_.push_back(IssuedByGroup(schedule, program));
      found_.channel_of.emplace_back(program.operations.size(), -1);
      found_.first_of.emplace_back(program.operations.size());
    }
  }

  Channels Find() {
    for (std::size_t g = 0; g < schedule_.groups.size(); ++g) {
      AddGroup(static_cast<std::int32_t>(g));
    }
    return std::move(found_);
  }

 private:
  void AddGroup(std::int32_t group) {
    const auto first = static_cast<std::int32_t>(found_.channels.size());
    std::int32_t count = 0;
    for (std::size_t p = 0; p < schedule_.programs.size(); ++p) {
      const auto program = static_cast<std::int32_t>(p);
      const std::vector<std::int32_t> members = ir::ProgramsOf(
          schedule_,
          ir::MembersOf(schedule_, schedule_.groups[group], schedule_.programs[program]));
      if (members.front() != program) continue;  // its instance is, or was, another's turn
      count = std::max(count, AddInstance(group, members, first));
    }
    for (std::int32_t number = 0; number < count; ++number) {
      const std::string& name = schedule_.groups[group].name;
      found_.channels.push_back(
          {group, number, number == 0 ? name : absl::StrCat(name, " #", number)});
    }
  }

  // Returns how many channels the instance uses. One channel for each combination of streams, in
  // order of first use.
  std::int32_t AddInstance(std::int32_t group, const std::vector<std::int32_t>& members,
                           std::int32_t first) {
    std::map<std::vector<ir::Stream>, std::int32_t> by_streams;
    const std::vector<std::uint32_t>& of_first = issued_[members.front()][group];
    for (std::size_t k = 0; k < of_first.size(); ++k) {
      std::vector<ir::Stream> streams;
      streams.reserve(members.size());
      for (const std::int32_t member : members) {
        streams.push_back(schedule_.programs[member].operations[issued_[member][group][k]].stream);
      }
      const auto next = static_cast<std::int32_t>(by_streams.size());
      const std::int32_t number = by_streams.try_emplace(std::move(streams), next).first->second;
      for (const std::int32_t member : members) {
        const std::uint32_t id = issued_[member][group][k];
        found_.channel_of[member][id] = first + number;
        found_.first_of[member][id] = {members.front(), of_first[k]};
      }
    }
    return static_cast<std::int32_t>(by_streams.size());
  }

  const ir::Schedule& schedule_;
  std::vector<Issued> issued_;  // by program
  Channels found_;
};

}  // namespace

Channels ChannelsOf(const ir::Schedule& schedule) { return ChannelFinder(schedule).Find(); }

}  // namespace optimus::executor
