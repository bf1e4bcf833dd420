// Every example's simulated timeline as a Recording, held against a plain twin: starts and ends
// worked out again from the Recording alone (lanes in order, dependencies, collectives together,
// eager messages) are those that were recorded, to the picosecond.

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/step/step.h"
#include "tests/run_experiment.h"
#include "traces/from_timeline.h"

namespace optimus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using traces::Communication;
using traces::CommunicationKind;
using traces::RecordedOp;
using traces::RecordedRank;
using traces::Recording;

struct Times {
  Picoseconds start, end;
};

// Relaxation: starts and ends only grow, until nothing moves.
class Twin {
 public:
  explicit Twin(const Recording& recording) : recording_(recording) {
    for (std::size_t r = 0; r < recording.ranks.size(); ++r) Index(r);
    while (Round()) {
    }
  }
  const std::vector<Times>& of(std::size_t rank) const { return times_[rank]; }
  Picoseconds step() const {
    Picoseconds last;
    for (const auto& rank : times_) {
      for (const Times& times : rank) last = std::max(last, times.end);
    }
    return last;
  }

 private:
  using Place = std::pair<std::size_t, std::size_t>;

  void Index(std::size_t r) {
    const RecordedRank& rank = recording_.ranks[r];
    times_.emplace_back(rank.ops.size());
    before_.emplace_back(rank.ops.size(), -1);
    std::vector<std::int64_t> last(rank.lanes.size(), -1);
    for (std::size_t i = 0; i < rank.ops.size(); ++i) {
      const auto lane = static_cast<std::size_t>(rank.ops[i].lane);
      before_[r][i] = std::exchange(last[lane], static_cast<std::int64_t>(i));
      const Communication* c = rank.CommunicationOf(rank.ops[i]);
      if (c == nullptr) continue;
      if (c->kind == CommunicationKind::kSend) {
        EXPECT_TRUE(sends_.emplace(std::tuple(rank.rank, c->peer, c->tag), Place(r, i)).second);
      } else if (c->kind != CommunicationKind::kReceive) {
        members_[{c->group, c->sequence}].push_back({r, i});
      }
    }
  }

  Picoseconds Ready(const Place& place) const {
    const auto& [r, i] = place;
    const RecordedRank& rank = recording_.ranks[r];
    Picoseconds ready;
    if (before_[r][i] >= 0) ready = times_[r][static_cast<std::size_t>(before_[r][i])].end;
    for (const traces::Dependency& d : rank.DependenciesOf(rank.ops[i])) {
      EXPECT_EQ(d.kind, traces::DependencyKind::kAfter);
      ready = std::max(ready, times_[r][d.op].end);
    }
    return ready;
  }

  Times Next(const Place& place) const {
    const auto& [r, i] = place;
    const RecordedRank& rank = recording_.ranks[r];
    const RecordedOp& op = rank.ops[i];
    const Communication* c = rank.CommunicationOf(op);
    Picoseconds start = Ready(place);
    if (c != nullptr && c->kind == CommunicationKind::kReceive) {
      const auto send = sends_.find({c->peer, rank.rank, c->tag});
      EXPECT_NE(send, sends_.end());
      if (send == sends_.end()) return {start, start};
      return {start, std::max(start, times_[send->second.first][send->second.second].end)};
    }
    if (c != nullptr && c->kind != CommunicationKind::kSend) {
      for (const Place& member : members_.at({c->group, c->sequence})) {
        start = std::max(start, Ready(member));
      }
    }
    return {start, start + op.duration()};
  }

  bool Round() {
    bool moved = false;
    for (std::size_t r = 0; r < times_.size(); ++r) {
      for (std::size_t i = 0; i < times_[r].size(); ++i) {
        const Times next = Next({r, i});
        moved |= next.start != times_[r][i].start || next.end != times_[r][i].end;
        times_[r][i] = next;
      }
    }
    return moved;
  }

  const Recording& recording_;
  std::vector<std::vector<Times>> times_;
  std::vector<std::vector<std::int64_t>> before_;  // on the same lane; -1: none
  std::map<std::tuple<std::int32_t, std::int32_t, std::int64_t>, Place> sends_;
  std::map<std::pair<std::int32_t, std::int64_t>, std::vector<Place>> members_;
};

void ExpectTwinAgrees(const Recording& recording, Picoseconds step) {
  const absl::Status checked = traces::CheckRecording(recording);
  ASSERT_TRUE(checked.ok()) << checked;
  const Twin twin(recording);
  EXPECT_EQ(twin.step(), step);
  for (std::size_t r = 0; r < recording.ranks.size(); ++r) {
    const RecordedRank& rank = recording.ranks[r];
    EXPECT_EQ(rank.step_end, step);
    for (std::size_t i = 0; i < rank.ops.size(); ++i) {
      ASSERT_EQ(twin.of(r)[i].start, rank.ops[i].start) << "rank " << rank.rank << " op " << i;
      ASSERT_EQ(twin.of(r)[i].end, rank.ops[i].end) << "rank " << rank.rank << " op " << i;
    }
  }
}

// Names, kinds, works and peers are those of the schedule.
void ExpectSays(const Recording& recording, const ir::Schedule& schedule) {
  for (const RecordedRank& rank : recording.ranks) {
    const std::int32_t stage = rank.rank / (schedule.world.dp * schedule.world.tp);
    const std::int32_t lane = ir::LaneOf(schedule, rank.rank % schedule.world.tp);
    const ir::Program& program =
        schedule.programs[static_cast<std::size_t>(ir::ProgramIndex(schedule, stage, lane))];
    ASSERT_EQ(rank.ops.size(), program.operations.size());
    for (std::size_t i = 0; i < rank.ops.size(); ++i) {
      const ir::Operation& op = program.operations[i];
      EXPECT_EQ(rank.lanes[rank.ops[i].lane].id, static_cast<std::int64_t>(op.stream));
      const Communication* c = rank.CommunicationOf(rank.ops[i]);
      ASSERT_EQ(c == nullptr, op.kind == ir::OperationKind::kKernel);
      if (c == nullptr || c->group < 0) continue;
      const auto& members = recording.groups[c->group].ranks;
      EXPECT_TRUE(std::binary_search(members.begin(), members.end(), rank.rank));
      EXPECT_EQ(c->bytes, schedule.collectives[op.work].work.bytes);
    }
  }
}

std::vector<std::string> Examples() {
  std::vector<std::string> paths;
  std::error_code none;  // elsewhere than at the root: no examples, which GoogleTest reports
  for (const auto& entry : std::filesystem::directory_iterator("examples", none)) {
    const std::string path = entry.path().string();
    // A slow GPU is in a replica that is not recorded; memory that is too small stops nothing here.
    if (!absl::EndsWith(path, ".textproto") || absl::StrContains(path, "slow_gpu")) continue;
    if (!absl::StrContains(path, "3072")) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

class TimelineRecording : public ::testing::TestWithParam<std::string> {};

TEST_P(TimelineRecording, SaysAllThatTheStepNeeds) {
  const auto built = testing::BuildFile(GetParam());
  ASSERT_TRUE(built.ok()) << built.status();
  const auto timeline = testing::Simulate(*built, sim::Fidelity::kAuto, /*spans=*/true);
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  const auto recording = traces::ToRecording(built->step.schedule, *timeline);
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(recording->ranks.size(), built->step.schedule.programs.size());
  ExpectTwinAgrees(*recording, timeline->step);
  ExpectSays(*recording, built->step.schedule);
}

// Every rank of the world on its own, with groups and peers of its own, takes as long.
TEST_P(TimelineRecording, OfAllRanksTakesAsLong) {
  const auto built = testing::BuildFile(GetParam());
  ASSERT_TRUE(built.ok()) << built.status();
  const ir::Schedule& schedule = built->step.schedule;
  const auto timeline = testing::Simulate(*built, sim::Fidelity::kAuto, /*spans=*/true);
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  traces::ToRecordingOptions options;
  options.all_ranks = true;
  options.most_operations = 450'000;  // the twin is slow
  const auto recording = traces::ToRecording(schedule, *timeline, options);
  std::int64_t operations = 0;
  for (const ir::Program& program : schedule.programs) {
    operations += std::ssize(program.operations) * schedule.world.dp * ir::LaneWidth(schedule);
  }
  if (operations > options.most_operations) {
    EXPECT_THAT(recording.status().message(),
                AllOf(HasSubstr(absl::StrCat("would have ", operations)), HasSubstr("450000")));
    return;
  }
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(recording->ranks.size(), static_cast<std::size_t>(schedule.world.gpus()));
  EXPECT_FALSE(recording->folded);
  EXPECT_TRUE(recording->remarks.empty());
  ExpectTwinAgrees(*recording, timeline->step);
  ExpectSays(*recording, schedule);
}

INSTANTIATE_TEST_SUITE_P(Examples, TimelineRecording, ::testing::ValuesIn(Examples()),
                         [](const auto& info) {
                           return std::filesystem::path(info.param).stem().string();
                         });

}  // namespace
}  // namespace optimus
