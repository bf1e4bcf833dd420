#include "traces/chakra/finish.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "traces/chakra/edges.h"
#include "traces/chakra/group_resolver.h"
#include "traces/chakra/times.h"

namespace optimus::traces::chakra {
namespace {

// Starts and durations are whole microseconds, each rounded by itself.
constexpr Picoseconds kRounding{1'000'000};

using LaneKey = std::pair<LaneClass, std::int64_t>;

Lane MakeLane(const LaneKey& key) {
  Lane lane;
  lane.id = key.second;
  switch (key.first) {
    case LaneClass::kThread:
      lane.name = absl::StrCat("thread ", key.second);
      lane.kind = LaneKind::kHostThread;
      break;
    case LaneClass::kHost:
      lane.name = "host";
      lane.kind = LaneKind::kHostThread;
      break;
    case LaneClass::kStream:
      lane.name = absl::StrCat("stream ", key.second);
      break;
    case LaneClass::kCompute:
      lane.name = "compute";
      break;
    case LaneClass::kCopy:
      lane.name = "copy";
      break;
    case LaneClass::kCommunication:
      lane.name = "communication";
      break;
    case LaneClass::kSend:
      lane.name = "send";
      break;
    case LaneClass::kReceive:
      lane.name = "receive";
      break;
  }
  return lane;
}

class Finisher {
 public:
  Finisher(const Draft& draft, const FinishOptions& options, Recording& recording,
           RecordingTables& tables)
      : draft_(draft), options_(options), recording_(recording), tables_(tables) {}

  absl::Status Run(const std::string& source) {
    OPTIMUS_ASSIGN_OR_RETURN(edges_, ResolveEdges(draft_, options_.control_dependencies,
                                                  options_.rank, recording_, tables_));
    DropCircles();
    OPTIMUS_ASSIGN_OR_RETURN(times_, WorkOutTimes(draft_, edges_));
    rank_.rank = options_.rank;
    rank_.source = source;
    rank_.clock_origin_ns = times_.clock_origin_ns;
    MakeLanes();
    AddOps();
    AddDependencies();
    OPTIMUS_RETURN_IF_ERROR(AddCommunications());
    rank_.works = draft_.works;
    NoteTimes();
    recording_.ranks.push_back(std::move(rank_));
    return absl::OkStatus();
  }

 private:
  const std::string& NameOf(const DraftOp& op) const {
    return recording_.names[static_cast<std::size_t>(op.name)];
  }
  void Note(const char* what, const char* effect, const DraftOp& op, Picoseconds time) {
    tables_.Note(
        {.what = what, .effect = effect, .rank = options_.rank, .name = NameOf(op), .time = time});
  }

  // Converters have written control dependencies that go round, on ids that they gave anew, beside
  // data dependencies that are right. With times, they are told by these (IsCall).
  void DropCircles() {
    if (HasStartTimes(draft_) || !ControlGoesRound(edges_)) return;
    edges_ = WithoutControl(edges_);
    Note("control dependencies that go in a circle", "all of them left out: data dependencies hold",
         draft_.ops.front(), Picoseconds(0));
  }

  void MakeLanes() {
    for (const DraftOp& op : draft_.ops) lanes_.try_emplace({op.lane, op.lane_id}, 0);
    rank_.lanes.reserve(lanes_.size());
    for (auto& [key, index] : lanes_) {
      index = static_cast<std::int32_t>(rank_.lanes.size());
      rank_.lanes.push_back(MakeLane(key));
      // A thread or stream has an order, whether or not the file has times.
      rank_.lanes.back().in_order = IsSerial(key.first) || times_.recorded;
    }
    if (times_.recorded) FindOverlaps();
  }

  void FindOverlaps() {
    std::vector<Picoseconds> ends(rank_.lanes.size());
    for (const std::uint32_t id : times_.order) {
      const DraftOp& op = draft_.ops[id];
      const OpTime& time = times_.ops[id];
      if (time.start == kUntimed) continue;
      const auto lane = static_cast<std::size_t>(lanes_[{op.lane, op.lane_id}]);
      if (time.start + kRounding < ends[lane] && rank_.lanes[lane].in_order) {
        rank_.lanes[lane].in_order = false;
        Note("operations of one thread or stream at the same time",
             "only dependencies order those of this lane", op, time.start);
      }
      ends[lane] = std::max(ends[lane], time.end);
    }
  }

  void AddOps() {
    place_.resize(draft_.ops.size());
    rank_.ops.reserve(draft_.ops.size());
    bool first = true;
    for (const std::uint32_t id : times_.order) {
      const DraftOp& op = draft_.ops[id];
      const OpTime& time = times_.ops[id];
      place_[id] = static_cast<std::uint32_t>(rank_.ops.size());
      rank_.ops.push_back({.start = time.start,
                           .end = time.end,
                           .lane = lanes_[{op.lane, op.lane_id}],
                           .name = op.name,
                           .communication = op.communication,
                           .work = op.work,
                           .kind = op.kind});
      if (time.start == kUntimed) continue;
      rank_.step_start = first ? time.start : std::min(rank_.step_start, time.start);
      rank_.step_end = std::max(rank_.step_end, time.end);
      first = false;
    }
  }

  void AddDependencies() {
    rank_.dependencies.reserve(edges_.edges.size());
    for (std::size_t place = 0; place < times_.order.size(); ++place) {
      const std::uint32_t id = times_.order[place];
      RecordedOp& op = rank_.ops[place];
      op.first_dependency = static_cast<std::uint32_t>(rank_.dependencies.size());
      for (const Edge& edge : edges_.Of(id)) {
        if (IsCall(id, edge)) {
          Note("control dependency on an operation that was not over", "left out: it is a call",
               draft_.ops[id], op.start);
        } else {
          rank_.dependencies.push_back({.op = place_[edge.op], .kind = DependencyKind::kAfter});
        }
      }
      op.dependency_count =
          static_cast<std::uint32_t>(rank_.dependencies.size()) - op.first_dependency;
    }
  }

  // Whether `edge` leads from a caller to what it calls, by the recorded times.
  bool IsCall(std::uint32_t id, const Edge& edge) const {
    const OpTime& earlier = times_.ops[edge.op];
    const OpTime& later = times_.ops[id];
    return edge.control && times_.recorded && earlier.start != kUntimed &&
           later.start != kUntimed && later.start < earlier.end;
  }

  absl::Status AddCommunications() {
    GroupResolver resolver(options_, draft_.groups, recording_, tables_);
    rank_.communications.reserve(draft_.communications.size());
    for (const DraftOp& op : draft_.ops) {
      if (op.communication < 0) continue;
      absl::StatusOr<Communication> communication = resolver.Resolve(
          draft_.communications[static_cast<std::size_t>(op.communication)], NameOf(op));
      if (!communication.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("node ", op.id, ": ", communication.status().message()));
      }
      rank_.communications.push_back(*communication);
    }
    return absl::OkStatus();
  }

  void NoteTimes() {
    if (times_.timed && !times_.recorded) {
      Note("durations without start times",
           "each starts as early as its dependencies and its thread or stream let it",
           draft_.ops.front(), Picoseconds(0));
    }
    for (std::size_t i = 0; i < draft_.ops.size(); ++i) {
      const DraftOp& op = draft_.ops[i];
      const OpTime& time = times_.ops[i];
      if (time.start == kUntimed || time.end > time.start || op.duration_ps == 0) continue;
      Note("duration of 0 us", "shorter than 1 us, how long is not known: takes no time", op,
           time.start);
    }
  }

  const Draft& draft_;
  const FinishOptions& options_;
  Recording& recording_;
  RecordingTables& tables_;
  Edges edges_;
  Times times_;
  RecordedRank rank_;
  absl::btree_map<LaneKey, std::int32_t> lanes_;
  std::vector<std::uint32_t> place_;
};

}  // namespace

absl::Status Finish(const Draft& draft, const FinishOptions& options, const std::string& source,
                    Recording& recording, RecordingTables& tables) {
  return Finisher(draft, options, recording, tables).Run(source);
}

}  // namespace optimus::traces::chakra
