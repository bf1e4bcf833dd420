#include "traces/kineto/build_rank.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "traces/kineto/communication.h"
#include "traces/kineto/step_graph.h"

namespace optimus::traces {
namespace {

class RankBuilder {
 public:
  RankBuilder(const RankFacts& facts, StepEvents events, Recording& recording,
              RecordingTables& tables)
      : facts_(facts), events_(std::move(events)), recording_(recording), tables_(tables) {}

  absl::Status Build() {
    rank_.rank = facts_.rank;
    rank_.source = facts_.source;
    OPTIMUS_ASSIGN_OR_RETURN(graph_, BuildStepGraph(events_));
    const std::vector<Edge> handed = HandOvers(events_.calls, graph_.keep_call);
    graph_.edges.insert(graph_.edges.end(), handed.begin(), handed.end());
    OPTIMUS_RETURN_IF_ERROR(SetClock());
    AddLanes();
    AddOps();
    AddDependencies();
    SetStep();
    OPTIMUS_RETURN_IF_ERROR(AddSteps());
    if (!handed.empty()) NoteHandOvers(handed);
    NoteGaps();
    NoteCommunications();
    NoteZeroLengths();
    NoteFile();
    recording_.ranks.push_back(std::move(rank_));
    return absl::OkStatus();
  }

 private:
  bool IsCall(Node node) const { return node < events_.calls.size(); }
  const FileCall& Call(Node node) const { return events_.calls[node]; }
  const FileOp& Op(Node node) const { return events_.ops[node - events_.calls.size()]; }
  Picoseconds StartOf(Node node) const { return IsCall(node) ? Call(node).start : Op(node).start; }
  std::uint32_t OrderOf(Node node) const {
    return IsCall(node) ? Call(node).order : Op(node).order;
  }
  const std::string& NameOf(Node node) const {
    return events_.names[static_cast<std::size_t>(IsCall(node) ? Call(node).name : Op(node).name)];
  }
  Picoseconds OnRank(Picoseconds reference_time) const { return reference_time - shift_; }

  void CollectNodes() {
    for (Node i = 0; i < events_.calls.size(); ++i) {
      if (graph_.keep_call[i]) nodes_.push_back(i);
    }
    const auto calls = static_cast<Node>(events_.calls.size());
    for (Node i = 0; i < events_.ops.size(); ++i) nodes_.push_back(calls + i);
    std::sort(nodes_.begin(), nodes_.end(), [this](Node a, Node b) {
      return std::make_pair(StartOf(a), OrderOf(a)) < std::make_pair(StartOf(b), OrderOf(b));
    });
  }

  // Whole nanoseconds, at or before the first time that is used.
  absl::Status SetClock() {
    CollectNodes();
    FileTime first = events_.reference.value_or(FileTime{});
    if (!nodes_.empty() &&
        (!facts_.chosen.step.has_value() || StartOf(nodes_.front()) < Picoseconds(0))) {
      // The reference is a time of the file, and operations are near it: it fits.
      first = Sum(first, StartOf(nodes_.front())).value_or(first);
    }
    origin_ = FileTime{first.ns, 0};
    shift_ = Difference(origin_, events_.reference.value_or(origin_)).value_or(Picoseconds(0));
    if (__builtin_add_overflow(facts_.base_ns, origin_.ns, &rank_.clock_origin_ns)) {
      return absl::InvalidArgumentError(
          "baseTimeNanoseconds with the first time does not fit 64 bits");
    }
    return absl::OkStatus();
  }

  // Lanes that are used, by kind and number.
  void AddLanes() {
    std::set<LaneKey> threads, streams;
    for (const Node node : nodes_) {
      if (IsCall(node)) {
        threads.insert(events_.threads.keys()[static_cast<std::size_t>(Call(node).thread)]);
      } else {
        streams.insert(events_.streams.keys()[static_cast<std::size_t>(Op(node).stream)]);
      }
    }
    AddLanesOf(threads, LaneKind::kHostThread, "process ", "thread ");
    AddLanesOf(streams, LaneKind::kStream, "device ", "stream ");
  }

  void AddLanesOf(const std::set<LaneKey>& keys, LaneKind kind, absl::string_view outer,
                  absl::string_view inner) {
    const bool several = !keys.empty() && keys.begin()->first != keys.rbegin()->first;
    std::vector<std::int32_t>& numbers = kind == LaneKind::kStream ? stream_lanes_ : thread_lanes_;
    const LaneNumbers& known = kind == LaneKind::kStream ? events_.streams : events_.threads;
    const std::vector<bool> overlapping =
        kind == LaneKind::kStream ? OverlappingQueues() : std::vector<bool>();
    numbers.resize(known.keys().size());
    for (const LaneKey& key : keys) {
      Lane lane;
      lane.kind = kind;
      lane.id = key.second;
      lane.name = several ? absl::StrCat(outer, key.first, " ", inner, key.second)
                          : absl::StrCat(inner, key.second);
      const auto number = static_cast<std::size_t>(known.Find(key).value_or(0));
      numbers[number] = static_cast<std::int32_t>(rank_.lanes.size());
      if (kind == LaneKind::kStream && overlapping[number]) {
        lane.in_order = false;
        Note("queue of an accelerator whose operations overlap", "has no order", lane.name,
             Picoseconds(0));
      }
      rank_.lanes.push_back(std::move(lane));
    }
  }

  // Queues of other accelerators (by stream) whose operations run at the same time.
  std::vector<bool> OverlappingQueues() const {
    std::vector<bool> overlaps(events_.streams.keys().size());
    std::vector<Picoseconds> ends(overlaps.size());
    for (const Node node : nodes_) {
      if (IsCall(node)) continue;
      const auto stream = static_cast<std::size_t>(Op(node).stream);
      if (!events_.foreign_stream[stream]) continue;
      const Picoseconds start = OnRank(Op(node).start), end = OnRank(Op(node).end);
      if (start < ends[stream]) overlaps[stream] = true;
      ends[stream] = std::max(ends[stream], end);
    }
    return overlaps;
  }

  void AddOps() {
    op_of_node_.resize(events_.calls.size() + events_.ops.size());
    rank_.ops.reserve(nodes_.size());
    for (const Node node : nodes_) {
      op_of_node_[node] = static_cast<std::uint32_t>(rank_.ops.size());
      rank_.ops.push_back(IsCall(node) ? HostOp(Call(node)) : DeviceOp(Op(node)));
      rank_.ops.back().name = tables_.Name(NameOf(node));
    }
    KeepUniqueSequences(rank_.communications);
  }

  RecordedOp HostOp(const FileCall& call) const {
    RecordedOp op;
    op.kind = OpKind::kHost;
    op.start = OnRank(call.start);
    op.end = OnRank(call.end);
    op.lane = thread_lanes_[static_cast<std::size_t>(call.thread)];
    return op;
  }

  RecordedOp DeviceOp(const FileOp& from) {
    RecordedOp op;
    op.kind = from.kind;
    op.start = OnRank(from.start);
    op.end = OnRank(from.end);
    op.lane = stream_lanes_[static_cast<std::size_t>(from.stream)];
    if (from.communication >= 0) {
      op.communication = static_cast<std::int32_t>(rank_.communications.size());
      rank_.communications.push_back(
          events_.communications[static_cast<std::size_t>(from.communication)]);
    }
    if (from.bytes > 0) op.work = WorkOf(from.bytes);
    return op;
  }

  std::int32_t WorkOf(std::int64_t bytes) {
    const auto [found, inserted] =
        works_.try_emplace(bytes, static_cast<std::int32_t>(rank_.works.size()));
    if (inserted) rank_.works.push_back(Work{0, Bytes(bytes)});
    return found->second;
  }

  void AddDependencies() {
    std::vector<Edge>& edges = graph_.edges;
    const auto key = [this](const Edge& edge) {
      return std::make_tuple(op_of_node_[edge.node], op_of_node_[edge.after], edge.kind);
    };
    std::sort(edges.begin(), edges.end(),
              [&](const Edge& a, const Edge& b) { return key(a) < key(b); });
    edges.erase(std::unique(edges.begin(), edges.end(),
                            [&](const Edge& a, const Edge& b) { return key(a) == key(b); }),
                edges.end());
    rank_.dependencies.reserve(edges.size());
    std::size_t next = 0;
    for (std::uint32_t id = 0; id < rank_.ops.size(); ++id) {
      RecordedOp& op = rank_.ops[id];
      op.first_dependency = static_cast<std::uint32_t>(rank_.dependencies.size());
      for (; next < edges.size() && op_of_node_[edges[next].node] == id; ++next) {
        rank_.dependencies.push_back({op_of_node_[edges[next].after], edges[next].kind});
        ++op.dependency_count;
      }
    }
  }

  void SetStep() {
    if (facts_.chosen.step.has_value()) {
      const FileStep& step = *facts_.chosen.step;
      rank_.step_start = Difference(step.start, origin_).value_or(Picoseconds(0));
      rank_.step_end = Difference(step.end, origin_).value_or(Picoseconds(0));
      return;
    }
    for (const RecordedOp& op : rank_.ops) rank_.step_end = std::max(rank_.step_end, op.end);
    if (!rank_.ops.empty()) rank_.step_start = rank_.ops.front().start;
  }

  absl::Status AddSteps() {
    for (const FileStep& step : facts_.steps) {
      const std::optional<Picoseconds> start = Difference(step.start, origin_);
      const std::optional<Picoseconds> end = Difference(step.end, origin_);
      if (!start.has_value() || !end.has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat("step ", step.number, " is more than 106 days from the one that is read"));
      }
      recording_.steps.push_back({step.number, rank_.rank, *start, *end});
    }
    return absl::OkStatus();
  }

  void Note(absl::string_view what, absl::string_view effect, absl::string_view name,
            Picoseconds time) {
    Remark remark;
    remark.what = std::string(what);
    remark.effect = std::string(effect);
    remark.rank = facts_.rank;
    remark.name = std::string(name);
    remark.time = time;
    tables_.Note(std::move(remark));
  }

  void NoteOp(absl::string_view what, absl::string_view effect, const RecordedOp& op) {
    Note(what, effect, recording_.names[static_cast<std::size_t>(op.name)], op.start);
  }

  void NoteHandOvers(const std::vector<Edge>& edges) {
    Remark remark;
    remark.what = "threads that hand over to each other: inferred from their times";
    remark.effect = "a call waits for the last one of another thread that ended before it began";
    remark.rank = facts_.rank;
    remark.name = NameOf(edges.front().node);
    remark.time = OnRank(StartOf(edges.front().node));
    remark.count = static_cast<std::int64_t>(edges.size());
    tables_.Note(std::move(remark));
  }

  void NoteGaps() {
    for (const Gap& gap : graph_.gaps) {
      NoteOp(gap.what, gap.effect, rank_.ops[op_of_node_[gap.node]]);
    }
  }

  void NoteCommunications() {
    for (const RecordedOp& op : rank_.ops) {
      const Communication* communication = rank_.CommunicationOf(op);
      if (communication == nullptr) continue;
      if (communication->kind == CommunicationKind::kUnknown) {
        NoteOp("communication kernel of an unknown kind",
               "is taken for none of those that are known", op);
      }
      if (communication->kind == CommunicationKind::kSendReceive) {
        NoteOp("send or receive: the file does not say which", "the direction is left open", op);
      }
      if (communication->group < 0) {
        NoteOp("communication without its group", "who takes part is not known", op);
      }
    }
  }

  void NoteZeroLengths() {
    if (events_.fraction_seen) return;
    for (const RecordedOp& op : rank_.ops) {
      if (op.kind == OpKind::kHost || op.duration() > Picoseconds(0)) continue;
      NoteOp("kernels shorter than 1 us were rounded to 0 by whoever wrote the file",
             "they take no time", op);
    }
  }

  void NoteFile() {
    if (facts_.chosen.last_was_cut) {
      const FileStep& last = facts_.steps.back();
      Note("the last step is a stub", "the step before it is read",
           absl::StrCat("ProfilerStep#", last.number),
           Difference(last.start, origin_).value_or(Picoseconds(0)));
    }
    if (events_.ops.empty()) {
      Note("the file has no GPU operations here", "there is nothing to replay", "", Picoseconds(0));
    }
  }

  const RankFacts& facts_;
  StepEvents events_;
  Recording& recording_;
  RecordingTables& tables_;
  RecordedRank rank_;
  StepGraph graph_;
  std::vector<Node> nodes_;  // what is kept, in order
  std::vector<std::uint32_t> op_of_node_;
  std::vector<std::int32_t> thread_lanes_, stream_lanes_;
  absl::flat_hash_map<std::int64_t, std::int32_t> works_;
  FileTime origin_;
  Picoseconds shift_;  // of the origin, from the reference
};

}  // namespace

absl::Status AddRank(const RankFacts& facts, StepEvents events, Recording& recording,
                     RecordingTables& tables) {
  return RankBuilder(facts, std::move(events), recording, tables).Build();
}

}  // namespace optimus::traces
