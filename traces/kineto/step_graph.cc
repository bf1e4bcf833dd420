#include "traces/kineto/step_graph.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

namespace optimus::traces {
namespace {

// When something was issued: calls of whole microseconds are told apart by their correlation ids,
// which count up.
struct Issue {
  Picoseconds at;
  std::int64_t correlation = -1;
  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14
  friend auto operator<=>(const Issue&, const Issue&) = default;
};

constexpr const char* kNoLaunch = "GPU operation without a launching call";
constexpr const char* kNoLaunchEffect = "starts when its stream is free";
constexpr const char* kOpenWait = "wait of a stream for an event that the file does not name";
constexpr const char* kOpenWaitEffect = "the stream is not held back by it";
constexpr const char* kOpenSync =
    "synchronisation with a stream or event that the file does not name";
constexpr const char* kOpenSyncEffect = "takes the time that it took";

constexpr std::size_t kMostDeviceWork = std::size_t{1} << 24;

class GraphBuilder {
 public:
  explicit GraphBuilder(const StepEvents& events)
      : events_(events), call_has_sync_(events.calls.size()) {
    graph_.keep_call.resize(events.calls.size());
  }

  absl::StatusOr<StepGraph> Build() {
    for (std::uint32_t i = 0; i < events_.calls.size(); ++i) {
      if (events_.calls[i].correlation >= 0) calls_.try_emplace(events_.calls[i].correlation, i);
    }
    Launches();
    for (const FileSync& sync : events_.syncs) Sync(sync);
    for (std::uint32_t i = 0; i < events_.calls.size(); ++i) CallWithoutSync(i);
    if (device_work_ > kMostDeviceWork) {
      return absl::InvalidArgumentError(
          "too many synchronisations with too many streams in one step; hint: no trace of a run");
    }
    return std::move(graph_);
  }

 private:
  struct Issued {
    Issue issue;
    std::uint32_t op = 0;
  };

  Node OpNode(std::uint32_t op) const { return static_cast<Node>(events_.calls.size()) + op; }

  std::optional<std::uint32_t> CallOf(std::int64_t correlation) const {
    const auto found = calls_.find(correlation);
    return found == calls_.end() ? std::nullopt : std::make_optional(found->second);
  }

  static Issue IssueOf(const FileCall& call) { return {call.start, call.correlation}; }

  void Launches() {
    issued_.resize(events_.streams.keys().size());
    for (std::uint32_t i = 0; i < events_.ops.size(); ++i) {
      const FileOp& op = events_.ops[i];
      Issue issue{op.start, op.correlation};
      if (const auto call = CallOf(op.correlation); call.has_value()) {
        issue = IssueOf(events_.calls[*call]);
        graph_.keep_call[*call] = true;
        graph_.edges.push_back({OpNode(i), *call, DependencyKind::kLaunch});
      } else {
        graph_.gaps.push_back({kNoLaunch, kNoLaunchEffect, OpNode(i)});
      }
      issued_[static_cast<std::size_t>(op.stream)].push_back({issue, i});
    }
    // Of one graph launch, by start.
    const auto before = [this](const Issued& a, const Issued& b) {
      const FileOp &x = events_.ops[a.op], &y = events_.ops[b.op];
      return std::tie(a.issue, x.start, x.order) < std::tie(b.issue, y.start, y.order);
    };
    for (std::vector<Issued>& stream : issued_) std::sort(stream.begin(), stream.end(), before);
  }

  // The last operation issued on a stream before `issue`.
  std::optional<std::uint32_t> LastBefore(std::int32_t stream, Issue issue) const {
    const std::vector<Issued>& ops = issued_[static_cast<std::size_t>(stream)];
    const auto next = std::lower_bound(ops.begin(), ops.end(), issue,
                                       [](const Issued& a, Issue b) { return a.issue < b; });
    return next == ops.begin() ? std::nullopt : std::make_optional(std::prev(next)->op);
  }

  std::optional<std::uint32_t> FirstBehind(std::int32_t stream, Issue issue) const {
    const std::vector<Issued>& ops = issued_[static_cast<std::size_t>(stream)];
    const auto next = std::upper_bound(ops.begin(), ops.end(), issue,
                                       [](Issue b, const Issued& a) { return b < a.issue; });
    return next == ops.end() ? std::nullopt : std::make_optional(next->op);
  }

  void Sync(const FileSync& sync) {
    const std::optional<std::uint32_t> call = CallOf(sync.correlation);
    if (sync.kind == SyncKind::kStreamWait) {
      StreamWait(sync, call);
      return;
    }
    if (!call.has_value() || events_.calls[*call].kind == CallKind::kQuery) return;
    const Issue issue = IssueOf(events_.calls[*call]);
    if (sync.kind == SyncKind::kContext) {
      call_has_sync_[*call] = true;
      EndAfterAll(*call);
    } else if (sync.kind == SyncKind::kStream) {
      const auto stream = events_.streams.Find({sync.device, sync.stream});
      call_has_sync_[*call] = sync.stream >= 0;
      if (stream.has_value()) EndAfter(*call, *stream, issue);
    } else if (sync.record_correlation >= 0 && sync.wait_stream >= 0) {
      call_has_sync_[*call] = true;
      const auto stream = events_.streams.Find({sync.device, sync.wait_stream});
      const auto record = CallOf(sync.record_correlation);
      // Recorded before the step: nothing of the step is waited for.
      if (stream.has_value() && record.has_value()) {
        EndAfter(*call, *stream, IssueOf(events_.calls[*record]));
      }
    }
  }

  void StreamWait(const FileSync& sync, std::optional<std::uint32_t> call) {
    if (sync.record_correlation < 0 || sync.wait_stream < 0) return;
    if (call.has_value()) call_has_sync_[*call] = true;
    const auto record = CallOf(sync.record_correlation);
    const auto waiting = events_.streams.Find({sync.device, sync.stream});
    const auto recorded = events_.streams.Find({sync.device, sync.wait_stream});
    if (!record.has_value() || !waiting.has_value() || !recorded.has_value()) return;
    if (*waiting == *recorded) return;
    const Issue issue =
        call.has_value() ? IssueOf(events_.calls[*call]) : Issue{sync.start, sync.correlation};
    const auto held = FirstBehind(*waiting, issue);
    const auto last = LastBefore(*recorded, IssueOf(events_.calls[*record]));
    if (!held.has_value() || !last.has_value()) return;
    graph_.edges.push_back({OpNode(*held), OpNode(*last), DependencyKind::kEvent});
  }

  void EndAfter(std::uint32_t call, std::int32_t stream, Issue issue) {
    graph_.keep_call[call] = true;
    const auto last = LastBefore(stream, issue);
    if (!last.has_value()) return;
    graph_.edges.push_back({call, OpNode(*last), DependencyKind::kEndAfter});
  }

  void EndAfterAll(std::uint32_t call) {
    graph_.keep_call[call] = true;
    device_work_ += issued_.size();
    if (device_work_ > kMostDeviceWork) return;
    for (std::size_t stream = 0; stream < issued_.size(); ++stream) {
      EndAfter(call, static_cast<std::int32_t>(stream), IssueOf(events_.calls[call]));
    }
  }

  // Files without cuda_sync events: only what a call's name says for sure.
  void CallWithoutSync(std::uint32_t id) {
    const CallKind kind = events_.calls[id].kind;
    if (kind == CallKind::kOther || kind == CallKind::kQuery) return;
    graph_.keep_call[id] = true;
    if (call_has_sync_[id] || kind == CallKind::kEventRecord) return;
    if (kind == CallKind::kDeviceSync) {
      EndAfterAll(id);
    } else if (kind == CallKind::kStreamWait) {
      graph_.gaps.push_back({kOpenWait, kOpenWaitEffect, id});
    } else {
      graph_.gaps.push_back({kOpenSync, kOpenSyncEffect, id});
    }
  }

  const StepEvents& events_;
  StepGraph graph_;
  absl::flat_hash_map<std::int64_t, std::uint32_t> calls_;
  std::vector<std::vector<Issued>> issued_;  // by stream, in order of issue
  std::vector<bool> call_has_sync_;
  std::size_t device_work_ = 0;
};

}  // namespace

absl::StatusOr<StepGraph> BuildStepGraph(const StepEvents& events) {
  return GraphBuilder(events).Build();
}

std::vector<Edge> HandOvers(const std::vector<FileCall>& calls, const std::vector<bool>& keep) {
  std::vector<Node> by_start;
  for (Node i = 0; i < calls.size(); ++i) {
    if (keep[i]) by_start.push_back(i);
  }
  std::vector<Node> by_end = by_start;
  std::sort(by_start.begin(), by_start.end(), [&](Node a, Node b) {
    return std::tie(calls[a].start, calls[a].order) < std::tie(calls[b].start, calls[b].order);
  });
  std::sort(by_end.begin(), by_end.end(), [&](Node a, Node b) {
    return std::tie(calls[a].end, calls[a].order) < std::tie(calls[b].end, calls[b].order);
  });
  std::vector<Edge> edges;
  absl::flat_hash_map<std::int32_t, Picoseconds> own_end;  // by thread: of its calls so far
  std::size_t ended = 0;
  for (const Node node : by_start) {
    const FileCall& call = calls[node];
    while (ended < by_end.size() && calls[by_end[ended]].end <= call.start) ++ended;
    const auto own = own_end.find(call.thread);
    // A call without length may be among those that "ended" before it began: itself.
    if (ended > 0 && by_end[ended - 1] != node && calls[by_end[ended - 1]].thread != call.thread) {
      const Node last = by_end[ended - 1];
      const bool later = own == own_end.end() || calls[last].end > own->second;
      const bool starts_first =
          std::tie(calls[last].start, calls[last].order) < std::tie(call.start, call.order);
      if (later && starts_first) edges.push_back({node, last, DependencyKind::kAfter});
    }
    own_end.insert_or_assign(call.thread,
                             own == own_end.end() ? call.end : std::max(own->second, call.end));
  }
  return edges;
}

}  // namespace optimus::traces
