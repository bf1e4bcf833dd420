#include "traces/from_timeline.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "traces/group_instance.h"
#include "traces/rank_times.h"
#include "traces/span_name.h"

namespace optimus::traces {
namespace {

// Members of all groups of a Recording together: 64 MiB of ranks.
constexpr std::int64_t kMostMembers = 16'000'000;
// That are made of others.
constexpr std::int32_t kMostRanks = 100'000;

CommunicationKind KindOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllGather:
      return CommunicationKind::kAllGather;
    case CollectiveKind::kReduceScatter:
      return CommunicationKind::kReduceScatter;
    case CollectiveKind::kAllReduce:
      return CommunicationKind::kAllReduce;
    case CollectiveKind::kBroadcast:
      return CommunicationKind::kBroadcast;
    case CollectiveKind::kAllToAll:
      return CommunicationKind::kAllToAll;
  }
  return CommunicationKind::kUnknown;
}

// What the ranks of one program have in common.
struct ProgramParts {
  std::vector<Lane> lanes;
  std::vector<std::int32_t> lane_of;  // by operation
  std::vector<std::int32_t> names;    // by operation
  std::vector<std::int32_t> work_of;  // by operation
  std::vector<Work> works;
  std::vector<Dependency> dependencies;
  bool made = false;
};

class Builder {
 public:
  Builder(const ir::Schedule& schedule, const ir::Timeline& timeline,
          const ToRecordingOptions& options)
      : schedule_(schedule), timeline_(timeline), options_(options), tables_(recording_) {}
  absl::StatusOr<Recording> Build();

 private:
  absl::Status CheckCount(const std::vector<RankTimes>& ranks) const;
  void ReadEntities();
  absl::Status AddAllRanks(const std::vector<RankTimes>& ranks);
  absl::Status AddRank(const RankTimes& times, std::int32_t rank, std::int32_t stands_for);
  absl::Status AddOperations(const RankTimes& times, const ProgramParts& parts, RecordedRank& rank);
  absl::Status AddCommunication(const ir::Program& program, const ir::Operation& op,
                                const Place& place, RecordedRank& rank, RecordedOp& out);
  const ProgramParts& PartsOf(const ir::Program& program);
  void AddLane(ir::Stream stream, std::array<std::int32_t, ir::kStreamCount>& lanes,
               ProgramParts& parts) const;
  std::int32_t WorkOf(const ir::Operation& op, absl::flat_hash_map<std::int32_t, std::int32_t>& at,
                      ProgramParts& parts) const;
  absl::StatusOr<Communication> CollectiveAt(const ir::Operation& op, const Place& place);
  Communication MessageAt(const ir::Program& program, const ir::Operation& op,
                          const Place& place) const;
  absl::StatusOr<std::int32_t> GroupOf(std::int32_t group, const Place& place);
  void NoteMissing();

  const ir::Schedule& schedule_;
  const ir::Timeline& timeline_;
  const ToRecordingOptions& options_;
  Recording recording_;
  RecordingTables tables_;
  std::vector<ProgramParts> parts_;
  absl::flat_hash_map<std::int32_t, std::int32_t> gpus_of_;  // by first rank of an entity
  // Of the rank that is being added, by group of the Schedule: index in the Recording, and how many
  // collectives were issued.
  std::vector<std::int32_t> groups_;
  std::vector<std::int64_t> issued_;
  // By group of the Schedule and lowest rank: index in the Recording.
  absl::flat_hash_map<std::pair<std::int32_t, std::int32_t>, std::int32_t> instances_;
  std::int64_t members_ = 0;  // of all of them
};

// How many operations all ranks have together; saturated.
std::int64_t OperationsOfWorld(const ir::Schedule& schedule) {
  const std::int64_t ranks_of_each = schedule.world.gpus() / std::ssize(schedule.programs);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 2;
  std::int64_t count = 0;
  for (const ir::Program& program : schedule.programs) {
    const std::int64_t operations = std::ssize(program.operations);
    if (operations > (kMost - count) / ranks_of_each) return kMost;
    count += operations * ranks_of_each;
  }
  return count;
}

absl::Status Builder::CheckCount(const std::vector<RankTimes>& ranks) const {
  const bool all = options_.all_ranks;
  if (all && schedule_.world.gpus() > kMostRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule: ", schedule_.world.gpus(), " ranks, but at most ", kMostRanks,
                     " are written one by one; hint: without --all-ranks one stands for those that "
                     "do the same"));
  }
  std::int64_t count = all ? OperationsOfWorld(schedule_) : 0;
  for (const RankTimes& rank : ranks) count += all ? 0 : std::ssize(rank.starts);
  if (count <= options_.most_operations) return absl::OkStatus();
  const std::int64_t rank_count = all ? schedule_.world.gpus() : std::ssize(ranks);
  return absl::InvalidArgumentError(
      absl::StrCat("timeline: a recording of ", rank_count, " ranks would have ", count,
                   " operations, but at most ", options_.most_operations, " are possible; hint: ",
                   all ? "without --all-ranks one rank stands for those that do the same"
                       : "simulate with --fidelity=folded, or with fewer micro-batches"));
}

void Builder::ReadEntities() {
  for (const ir::EntityAccount& entity : timeline_.entities) {
    gpus_of_[entity.rank] = std::clamp(entity.gpus, 1, schedule_.world.gpus());
  }
}

void Builder::AddLane(ir::Stream stream, std::array<std::int32_t, ir::kStreamCount>& lanes,
                      ProgramParts& parts) const {
  std::int32_t& lane = lanes[static_cast<std::size_t>(stream)];
  if (lane < 0) {
    lane = static_cast<std::int32_t>(parts.lanes.size());
    parts.lanes.push_back(
        {TrackName(stream), LaneKind::kStream, true, static_cast<std::int64_t>(stream)});
  }
  parts.lane_of.push_back(lane);
}

std::int32_t Builder::WorkOf(const ir::Operation& op,
                             absl::flat_hash_map<std::int32_t, std::int32_t>& at,
                             ProgramParts& parts) const {
  if (op.kind != ir::OperationKind::kKernel) return -1;
  const Kernel& kernel = schedule_.kernels[op.work];
  const Work work = {kernel.flops.value(), kernel.bytes};
  if (work == Work{}) return -1;
  const auto [found, added] =
      at.try_emplace(op.work, static_cast<std::int32_t>(parts.works.size()));
  if (added) parts.works.push_back(work);
  return found->second;
}

const ProgramParts& Builder::PartsOf(const ir::Program& program) {
  ProgramParts& parts =
      parts_[static_cast<std::size_t>(ir::ProgramIndex(schedule_, program.stage, program.lane))];
  if (parts.made) return parts;
  parts.made = true;
  std::array<std::int32_t, ir::kStreamCount> lanes{};
  lanes.fill(-1);
  absl::flat_hash_map<std::int32_t, std::int32_t> works;
  const std::size_t count = program.operations.size();
  parts.lane_of.reserve(count);
  parts.names.reserve(count);
  parts.work_of.reserve(count);
  for (const ir::Operation& op : program.operations) {
    AddLane(op.stream, lanes, parts);
    parts.names.push_back(tables_.Name(SpanName(schedule_, op)));
    parts.work_of.push_back(WorkOf(op, works, parts));
  }
  parts.dependencies.reserve(program.dependencies.size());
  for (const std::uint32_t before : program.dependencies) {
    parts.dependencies.push_back({before, DependencyKind::kAfter});
  }
  return parts;
}

absl::StatusOr<std::int32_t> Builder::GroupOf(std::int32_t group, const Place& place) {
  std::int32_t& mine = groups_[static_cast<std::size_t>(group)];
  if (mine >= 0) return mine;
  const Instance instance = InstanceAt(schedule_, schedule_.groups[group], place);
  const auto [known, added] = instances_.try_emplace({group, instance.first_rank}, -1);
  if (added) {
    members_ += instance.members;
    if (members_ > kMostMembers) {
      return absl::InvalidArgumentError(
          absl::StrCat("schedule: group '", schedule_.groups[group].name, "': the groups of all ",
                       "recorded ranks have more than ", kMostMembers,
                       " members together; hint: ", "record fewer ranks"));
    }
    known->second = tables_.Group(GroupAt(schedule_, schedule_.groups[group], place));
  }
  mine = known->second;
  return mine;
}

absl::StatusOr<Communication> Builder::CollectiveAt(const ir::Operation& op, const Place& place) {
  const ir::Collective& collective = schedule_.collectives[op.work];
  Communication communication;
  communication.kind = KindOf(collective.work.kind);
  OPTIMUS_ASSIGN_OR_RETURN(communication.group, GroupOf(collective.group, place));
  communication.sequence = issued_[static_cast<std::size_t>(collective.group)]++;
  communication.bytes = collective.work.bytes;
  return communication;
}

// Rank i of a lane talks to rank i of the peer's lane, in the same replica.
Communication Builder::MessageAt(const ir::Program& program, const ir::Operation& op,
                                 const Place& place) const {
  const std::int32_t peer_lane = op.peer_lane < 0 ? program.lane : op.peer_lane;
  const std::int32_t width = ir::LaneWidth(schedule_);
  Communication communication;
  communication.kind =
      op.kind == ir::OperationKind::kSend ? CommunicationKind::kSend : CommunicationKind::kReceive;
  communication.peer = ir::RankOf(schedule_.world, op.peer_stage, place.replica,
                                  peer_lane * width + place.tensor_rank % width);
  communication.tag = op.message;
  const Bytes bytes = schedule_.transfers[op.work].bytes;
  if (bytes > Bytes(0)) communication.bytes = bytes;
  return communication;
}

absl::Status Builder::AddCommunication(const ir::Program& program, const ir::Operation& op,
                                       const Place& place, RecordedRank& rank, RecordedOp& out) {
  out.kind = OpKind::kCommunication;
  out.communication = static_cast<std::int32_t>(rank.communications.size());
  Communication communication;
  if (op.kind == ir::OperationKind::kCollective) {
    OPTIMUS_ASSIGN_OR_RETURN(communication, CollectiveAt(op, place));
  } else {
    communication = MessageAt(program, op, place);
  }
  rank.communications.push_back(communication);
  return absl::OkStatus();
}

absl::Status Builder::AddOperations(const RankTimes& times, const ProgramParts& parts,
                                    RecordedRank& rank) {
  const ir::Program& program = *times.program;
  const Place place = PlaceOf(schedule_.world, rank.rank);
  groups_.assign(schedule_.groups.size(), -1);
  issued_.assign(schedule_.groups.size(), 0);
  rank.ops.reserve(program.operations.size());
  for (std::size_t id = 0; id < program.operations.size(); ++id) {
    const ir::Operation& op = program.operations[id];
    RecordedOp out;
    out.start = times.starts[id];
    out.end = times.ends[id];
    out.lane = parts.lane_of[id];
    out.name = parts.names[id];
    out.work = parts.work_of[id];
    out.first_dependency = op.first_dependency;
    out.dependency_count = op.dependency_count;
    if (op.kind != ir::OperationKind::kKernel) {
      OPTIMUS_RETURN_IF_ERROR(AddCommunication(program, op, place, rank, out));
    }
    rank.ops.push_back(out);
  }
  return absl::OkStatus();
}

absl::Status Builder::AddRank(const RankTimes& times, std::int32_t rank, std::int32_t stands_for) {
  const ProgramParts& parts = PartsOf(*times.program);
  RecordedRank recorded;
  recorded.rank = rank;
  recorded.stands_for = stands_for;
  recorded.step_end = timeline_.step;
  recorded.lanes = parts.lanes;
  recorded.works = parts.works;
  recorded.dependencies = parts.dependencies;
  OPTIMUS_RETURN_IF_ERROR(AddOperations(times, parts, recorded));
  recording_.steps.push_back({0, rank, Picoseconds(0), timeline_.step});
  recording_.ranks.push_back(std::move(recorded));
  return absl::OkStatus();
}

// Ranks that have spans are themselves; every other one is the first that ran its program.
absl::Status Builder::AddAllRanks(const std::vector<RankTimes>& ranks) {
  std::vector<const RankTimes*> first_of(schedule_.programs.size(), nullptr);
  absl::flat_hash_map<std::int32_t, const RankTimes*> own;
  for (const RankTimes& times : ranks) {
    const ir::Program& program = *times.program;
    const RankTimes*& first = first_of[static_cast<std::size_t>(
        ir::ProgramIndex(schedule_, program.stage, program.lane))];
    if (first == nullptr) first = &times;
    own.emplace(times.rank, &times);
  }
  for (std::int32_t rank = 0; rank < schedule_.world.gpus(); ++rank) {
    const Place place = PlaceOf(schedule_.world, rank);
    const std::int32_t program =
        ir::ProgramIndex(schedule_, place.stage, ir::LaneOf(schedule_, place.tensor_rank));
    const auto found = own.find(rank);
    const RankTimes* times =
        found == own.end() ? first_of[static_cast<std::size_t>(program)] : found->second;
    if (times == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("timeline: no rank of stage ", place.stage, " has spans, so rank ", rank,
                       " cannot be made; hint: record the spans of every stage"));
    }
    OPTIMUS_RETURN_IF_ERROR(AddRank(*times, rank, 1));
  }
  return absl::OkStatus();
}

void Builder::NoteMissing() {
  std::int64_t there = 0;
  for (const RecordedRank& rank : recording_.ranks) {
    there += rank.stands_for;
    recording_.folded |= rank.stands_for > 1;
  }
  const std::int64_t missing = schedule_.world.gpus() - there;
  if (missing <= 0) return;
  const std::string what = "rank without spans, and no recorded rank stands for it";
  const std::string effect =
      "its operations are not there, and its groups have fewer members that are";
  tables_.Note(
      {.what = what, .effect = effect, .rank = -1, .name = {}, .time = {}, .count = missing});
}

// By the runners of schedule/ir and sim; a timeline that does not say its runner was made by hand.
bool IsSimulated(const ir::Timeline& timeline) {
  return timeline.runner.empty() || timeline.runner == "simgrid" ||
         timeline.runner == "critical_path";
}

absl::StatusOr<Recording> Builder::Build() {
  if (timeline_.step < Picoseconds(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("timeline: a step of ", timeline_.step.value(), " ps; expected 0 or more"));
  }
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<RankTimes> ranks, CollectTimes(schedule_, timeline_));
  OPTIMUS_RETURN_IF_ERROR(CheckCount(ranks));
  recording_.format = "optimus timeline";
  recording_.world = schedule_.world.gpus();
  recording_.messages = MessageRule::kEager;
  recording_.waits_inside = !IsSimulated(timeline_);
  recording_.one_clock = true;
  parts_.resize(schedule_.programs.size());
  ReadEntities();
  if (options_.all_ranks) {
    OPTIMUS_RETURN_IF_ERROR(AddAllRanks(ranks));
  } else {
    for (const RankTimes& times : ranks) {
      const auto found = gpus_of_.find(times.rank);
      OPTIMUS_RETURN_IF_ERROR(
          AddRank(times, times.rank, found == gpus_of_.end() ? 1 : found->second));
    }
  }
  NoteMissing();
  return std::move(recording_);
}

}  // namespace

absl::StatusOr<Recording> ToRecording(const ir::Schedule& schedule, const ir::Timeline& timeline,
                                      const ToRecordingOptions& options) {
  return Builder(schedule, timeline, options).Build();
}

}  // namespace optimus::traces
