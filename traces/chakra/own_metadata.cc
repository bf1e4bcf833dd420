#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "traces/chakra/own_attributes.h"
#include "traces/chakra/own_format.h"

namespace optimus::traces::chakra {
namespace {

using ::optimus::chakra::GlobalMetadata;

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kInt64Min = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHostThread = 1, kInOrder = 2;  // bits of a lane

absl::Status ColumnError(absl::string_view table) {
  return absl::InvalidArgumentError(
      absl::StrCat("attributes optimus_", table, "_...: lists of different lengths"));
}

// Reads columns of one table: lists "optimus_TABLE_COLUMN" of equal length.
class Columns {
 public:
  Columns(const AttributeIndex& index, std::string table)
      : index_(index), table_(std::move(table)) {}

  absl::Status Int64s(absl::string_view column, std::int64_t least, std::int64_t largest,
                      std::vector<std::int64_t>& values) {
    OPTIMUS_ASSIGN_OR_RETURN(values, index_.Int64s(NameOf(column), least, largest));
    return Check(values.size());
  }
  absl::Status Texts(absl::string_view column, std::vector<std::string>& values) {
    OPTIMUS_ASSIGN_OR_RETURN(values, index_.Texts(NameOf(column)));
    return Check(values.size());
  }

 private:
  std::string NameOf(absl::string_view column) const {
    return absl::StrCat("optimus_", table_, "_", column);
  }
  absl::Status Check(std::size_t size) {
    if (has_size_ && size != size_) return ColumnError(table_);
    size_ = size;
    has_size_ = true;
    return absl::OkStatus();
  }
  const AttributeIndex& index_;
  const std::string table_;
  std::size_t size_ = 0;
  bool has_size_ = false;
};

absl::Status ReadRun(const AttributeIndex& index, Recording& recording) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t world, index.Whole("optimus_world", 0, kInt32Max));
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t rendezvous, index.Whole("optimus_rendezvous", 0, 1));
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t inside, index.Whole("optimus_waits_inside", 0, 1));
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t clock, index.Whole("optimus_one_clock", 0, 1));
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t folded, index.Whole("optimus_folded", 0, 1));
  recording.world = static_cast<std::int32_t>(world);
  recording.messages = rendezvous != 0 ? MessageRule::kRendezvous : MessageRule::kEager;
  recording.waits_inside = inside != 0;
  recording.one_clock = clock != 0;
  recording.folded = folded != 0;
  return absl::OkStatus();
}

absl::Status ReadRank(const AttributeIndex& index, RecordedRank& rank) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t number, index.Whole("optimus_rank", 0, kInt32Max));
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t stands_for,
                           index.Whole("optimus_stands_for", 0, kInt32Max));
  OPTIMUS_ASSIGN_OR_RETURN(rank.clock_origin_ns,
                           index.Whole("optimus_clock_origin_ns", kInt64Min, kInt64Max));
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t start,
                           index.Whole("optimus_step_start_ps", kInt64Min, kInt64Max));
  OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t end,
                           index.Whole("optimus_step_end_ps", kInt64Min, kInt64Max));
  rank.rank = static_cast<std::int32_t>(number);
  rank.stands_for = static_cast<std::int32_t>(stands_for);
  rank.step_start = Picoseconds(start);
  rank.step_end = Picoseconds(end);
  return absl::OkStatus();
}

absl::Status ReadLanes(const AttributeIndex& index, RecordedRank& rank) {
  Columns columns(index, "lane");
  std::vector<std::string> names;
  std::vector<std::int64_t> ids, flags;
  OPTIMUS_RETURN_IF_ERROR(columns.Texts("names", names));
  OPTIMUS_RETURN_IF_ERROR(columns.Int64s("ids", kInt64Min, kInt64Max, ids));
  OPTIMUS_RETURN_IF_ERROR(columns.Int64s("flags", 0, kHostThread | kInOrder, flags));
  for (std::size_t i = 0; i < names.size(); ++i) {
    rank.lanes.push_back(
        {.name = std::move(names[i]),
         .kind = (flags[i] & kHostThread) != 0 ? LaneKind::kHostThread : LaneKind::kStream,
         .in_order = (flags[i] & kInOrder) != 0,
         .id = ids[i]});
  }
  return absl::OkStatus();
}

// The ranks of all groups stand in one list, one group's behind the other's.
absl::Status ReadGroupRanks(const AttributeIndex& index, const std::vector<std::int64_t>& counts,
                            std::vector<CommunicatorGroup>& groups) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<std::int64_t> ranks,
                           index.Int64s("optimus_group_ranks", 0, kInt32Max));
  std::size_t next = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto count = static_cast<std::size_t>(counts[i]);
    if (count > ranks.size() - next) return ColumnError("group");
    groups[i].ranks.reserve(count);
    for (std::size_t j = 0; j < count; ++j) {
      groups[i].ranks.push_back(static_cast<std::int32_t>(ranks[next++]));
    }
  }
  return next == ranks.size() ? absl::OkStatus() : ColumnError("group");
}

absl::Status ReadGroups(const AttributeIndex& index, std::vector<CommunicatorGroup>& groups,
                        std::vector<std::int32_t>& group_numbers) {
  Columns columns(index, "group");
  std::vector<std::string> names, descriptions, roles;
  std::vector<std::int64_t> numbers, sizes, counts;
  OPTIMUS_RETURN_IF_ERROR(columns.Int64s("numbers", 0, kInt32Max, numbers));
  OPTIMUS_RETURN_IF_ERROR(columns.Texts("names", names));
  OPTIMUS_RETURN_IF_ERROR(columns.Texts("descriptions", descriptions));
  OPTIMUS_RETURN_IF_ERROR(columns.Texts("roles", roles));
  OPTIMUS_RETURN_IF_ERROR(columns.Int64s("sizes", 0, kInt32Max, sizes));
  OPTIMUS_RETURN_IF_ERROR(columns.Int64s("rank_counts", 0, kInt32Max, counts));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    group_numbers.push_back(static_cast<std::int32_t>(numbers[i]));
    groups.push_back({.name = std::move(names[i]),
                      .description = std::move(descriptions[i]),
                      .role = std::move(roles[i]),
                      .ranks = {},
                      .size = static_cast<std::int32_t>(sizes[i])});
  }
  return ReadGroupRanks(index, counts, groups);
}

absl::Status ReadSteps(const AttributeIndex& index, std::vector<StepMark>& steps) {
  Columns columns(index, "step");
  std::vector<std::int64_t> numbers, ranks, starts, ends;
  OPTIMUS_RETURN_IF_ERROR(columns.Int64s("numbers", kInt64Min, kInt64Max, numbers));
  OPTIMUS_RETURN_IF_ERROR(columns.Int64s("ranks", -1, kInt32Max, ranks));
  OPTIMUS_RETURN_IF_ERROR(columns.Int64s("starts_ps", kInt64Min, kInt64Max, starts));
  OPTIMUS_RETURN_IF_ERROR(columns.Int64s("ends_ps", kInt64Min, kInt64Max, ends));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    steps.push_back({.number = numbers[i],
                     .rank = static_cast<std::int32_t>(ranks[i]),
                     .start = Picoseconds(starts[i]),
                     .end = Picoseconds(ends[i])});
  }
  return absl::OkStatus();
}

absl::Status ReadRemarks(const AttributeIndex& index, std::vector<Remark>& remarks) {
  Columns columns(index, "remark");
  std::vector<std::string> whats, effects, names;
  std::vector<std::int64_t> ranks, times, counts;
  OPTIMUS_RETURN_IF_ERROR(columns.Texts("whats", whats));
  OPTIMUS_RETURN_IF_ERROR(columns.Texts("effects", effects));
  OPTIMUS_RETURN_IF_ERROR(columns.Texts("names", names));
  OPTIMUS_RETURN_IF_ERROR(columns.Int64s("ranks", -1, kInt32Max, ranks));
  OPTIMUS_RETURN_IF_ERROR(columns.Int64s("times_ps", kInt64Min, kInt64Max, times));
  OPTIMUS_RETURN_IF_ERROR(columns.Int64s("counts", 0, kInt32Max, counts));
  for (std::size_t i = 0; i < whats.size(); ++i) {
    remarks.push_back({.what = std::move(whats[i]),
                       .effect = std::move(effects[i]),
                       .rank = static_cast<std::int32_t>(ranks[i]),
                       .name = std::move(names[i]),
                       .time = Picoseconds(times[i]),
                       .count = counts[i]});
  }
  return absl::OkStatus();
}

void WriteLanes(const RecordedRank& rank, Attributes& to) {
  TextColumn names;
  Int64Column ids, flags;
  for (const Lane& lane : rank.lanes) {
    names.values.push_back(lane.name);
    ids.values.push_back(lane.id);
    flags.values.push_back((lane.kind == LaneKind::kHostThread ? kHostThread : 0) |
                           (lane.in_order ? kInOrder : 0));
  }
  names.AddTo(to, "optimus_lane_names");
  ids.AddTo(to, "optimus_lane_ids");
  flags.AddTo(to, "optimus_lane_flags");
}

// Ascending: of the groups that the communications of a rank are in; in the first file of all.
std::vector<std::int32_t> GroupsOf(const Recording& recording, std::size_t index) {
  std::vector<std::int32_t> groups;
  if (index == 0) {
    groups.reserve(recording.groups.size());
    for (std::size_t i = 0; i < recording.groups.size(); ++i) {
      groups.push_back(static_cast<std::int32_t>(i));
    }
    return groups;
  }
  for (const Communication& communication : recording.ranks[index].communications) {
    if (communication.group >= 0) groups.push_back(communication.group);
  }
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

void WriteGroups(const Recording& recording, std::size_t index, Attributes& to) {
  Int64Column numbers, sizes, counts, ranks;
  TextColumn names, descriptions, roles;
  for (const std::int32_t number : GroupsOf(recording, index)) {
    const CommunicatorGroup& group = recording.groups[static_cast<std::size_t>(number)];
    numbers.values.push_back(number);
    names.values.push_back(group.name);
    descriptions.values.push_back(group.description);
    roles.values.push_back(group.role);
    sizes.values.push_back(group.size);
    counts.values.push_back(static_cast<std::int64_t>(group.ranks.size()));
    ranks.values.insert(ranks.values.end(), group.ranks.begin(), group.ranks.end());
  }
  numbers.AddTo(to, "optimus_group_numbers");
  names.AddTo(to, "optimus_group_names");
  descriptions.AddTo(to, "optimus_group_descriptions");
  roles.AddTo(to, "optimus_group_roles");
  sizes.AddTo(to, "optimus_group_sizes");
  counts.AddTo(to, "optimus_group_rank_counts");
  ranks.AddTo(to, "optimus_group_ranks");
}

// Whether what is said of `rank` stands in the file of index `index`: its own, or else the first.
bool BelongsTo(const Recording& recording, std::size_t index, std::int32_t rank) {
  if (recording.ranks[index].rank == rank) return true;
  return index == 0 && std::none_of(recording.ranks.begin(), recording.ranks.end(),
                                    [&](const RecordedRank& other) { return other.rank == rank; });
}

void WriteSteps(const Recording& recording, std::size_t index, Attributes& to) {
  Int64Column numbers, ranks, starts, ends;
  for (const StepMark& step : recording.steps) {
    if (!BelongsTo(recording, index, step.rank)) continue;
    numbers.values.push_back(step.number);
    ranks.values.push_back(step.rank);
    starts.values.push_back(step.start.value());
    ends.values.push_back(step.end.value());
  }
  numbers.AddTo(to, "optimus_step_numbers");
  ranks.AddTo(to, "optimus_step_ranks");
  starts.AddTo(to, "optimus_step_starts_ps");
  ends.AddTo(to, "optimus_step_ends_ps");
}

void WriteRemarks(const Recording& recording, std::size_t index, Attributes& to) {
  TextColumn whats, effects, names;
  Int64Column ranks, times, counts;
  for (const Remark& remark : recording.remarks) {
    if (!BelongsTo(recording, index, remark.rank)) continue;
    whats.values.push_back(remark.what);
    effects.values.push_back(remark.effect);
    names.values.push_back(remark.name);
    ranks.values.push_back(remark.rank);
    times.values.push_back(remark.time.value());
    counts.values.push_back(remark.count);
  }
  whats.AddTo(to, "optimus_remark_whats");
  effects.AddTo(to, "optimus_remark_effects");
  names.AddTo(to, "optimus_remark_names");
  ranks.AddTo(to, "optimus_remark_ranks");
  times.AddTo(to, "optimus_remark_times_ps");
  counts.AddTo(to, "optimus_remark_counts");
}

void WriteRun(const Recording& recording, std::size_t index, Attributes& to) {
  const RecordedRank& rank = recording.ranks[index];
  AddInt32(to, "optimus_format", kOwnFormat);
  AddInt32(to, "optimus_rank", rank.rank);
  AddInt32(to, "optimus_stands_for", rank.stands_for);
  AddInt64(to, "optimus_clock_origin_ns", rank.clock_origin_ns);
  AddInt64(to, "optimus_step_start_ps", rank.step_start.value());
  AddInt64(to, "optimus_step_end_ps", rank.step_end.value());
  AddInt32(to, "optimus_world", recording.world);
  AddBool(to, "optimus_rendezvous", recording.messages == MessageRule::kRendezvous);
  AddBool(to, "optimus_waits_inside", recording.waits_inside);
  AddBool(to, "optimus_one_clock", recording.one_clock);
  AddBool(to, "optimus_folded", recording.folded);
}

}  // namespace

bool IsOwn(const GlobalMetadata& metadata) {
  return std::any_of(metadata.attr().begin(), metadata.attr().end(),
                     [](const auto& attribute) { return attribute.name() == "optimus_format"; });
}

absl::Status ReadOwnMetadata(const GlobalMetadata& metadata, Recording& recording,
                             std::vector<std::int32_t>& group_numbers) {
  const AttributeIndex index(metadata.attr());
  if (const auto format = index.Whole("optimus_format", 1, kOwnFormat); !format.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(format.status().message(), "; hint: written by a later version of Optimus"));
  }
  if (index.Has("optimus_names")) {
    OPTIMUS_ASSIGN_OR_RETURN(recording.names, index.Texts("optimus_names"));
  }
  RecordedRank& rank = recording.ranks.emplace_back();
  OPTIMUS_RETURN_IF_ERROR(ReadRun(index, recording));
  OPTIMUS_RETURN_IF_ERROR(ReadRank(index, rank));
  OPTIMUS_RETURN_IF_ERROR(ReadLanes(index, rank));
  OPTIMUS_RETURN_IF_ERROR(ReadGroups(index, recording.groups, group_numbers));
  OPTIMUS_RETURN_IF_ERROR(ReadSteps(index, recording.steps));
  return ReadRemarks(index, recording.remarks);
}

void WriteOwnMetadata(const Recording& recording, std::size_t index, GlobalMetadata& metadata) {
  Attributes& to = *metadata.mutable_attr();
  WriteRun(recording, index, to);
  WriteLanes(recording.ranks[index], to);
  WriteGroups(recording, index, to);
  WriteSteps(recording, index, to);
  WriteRemarks(recording, index, to);
  if (index == 0) TextColumn{recording.names}.AddTo(to, "optimus_names");
}

}  // namespace optimus::traces::chakra
