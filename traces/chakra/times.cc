#include "traces/chakra/times.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::traces::chakra {
namespace {

constexpr std::int64_t kPicosPerMicro = 1'000'000;
constexpr std::int64_t kNanosPerMicro = 1'000;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
// Sums of two of these fit into int64.
constexpr std::uint64_t kMostMicros = static_cast<std::uint64_t>(kMost / kPicosPerMicro / 4);

absl::Status TimeError(const DraftOp& op, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("node ", op.id, ": ", what));
}

bool HasStart(const DraftOp& op) { return op.start_ps >= 0 || op.start_us > 0; }

// -1: the node says none.
absl::StatusOr<std::int64_t> DurationOf(const DraftOp& op) {
  if (op.duration_ps >= 0) {
    if (op.duration_ps <= kMost / 4) return op.duration_ps;
  } else if (op.duration_us <= kMostMicros) {
    return static_cast<std::int64_t>(op.duration_us) * kPicosPerMicro;
  }
  return TimeError(op, "a duration of more than 26 days");
}

// A duration that the node leaves open: 0, and its work or its bytes say what there is to do.
bool IsOpen(const DraftOp& op) {
  const bool is_zero = op.duration_ps < 0 && op.duration_us == 0;
  return is_zero && (op.kind == OpKind::kCommunication || op.work >= 0);
}

class Recorded {
 public:
  Recorded(const Draft& draft, Times& times) : draft_(draft), times_(times) {}

  absl::Status Run() {
    OPTIMUS_RETURN_IF_ERROR(FindOrigin());
    Picoseconds key;
    for (std::size_t i = 0; i < draft_.ops.size(); ++i) {
      const DraftOp& op = draft_.ops[i];
      OpTime& time = times_.ops[i];
      if (HasStart(op) || op.duration_us > 0 || op.duration_ps >= 0) {
        OPTIMUS_RETURN_IF_ERROR(Set(op, key, time));
        key = time.start;
        times_.timed = true;
      }
      time.key = key;
    }
    std::iota(times_.order.begin(), times_.order.end(), std::uint32_t{0});
    std::stable_sort(
        times_.order.begin(), times_.order.end(),
        [&](std::uint32_t a, std::uint32_t b) { return times_.ops[a].key < times_.ops[b].key; });
    return absl::OkStatus();
  }

 private:
  // Whole microseconds count from some clock's start, which may be decades ago.
  absl::Status FindOrigin() {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    bool from_zero = false;
    for (const DraftOp& op : draft_.ops) {
      if (op.start_ps >= 0) {
        least = 0;  // exact times count from 0
      } else if (op.start_us > 0) {
        least = std::min(least, op.start_us);
      } else if (op.duration_us > 0) {
        from_zero = true;
      }
    }
    if (from_zero && least <= kMostMicros) least = 0;
    if (least > static_cast<std::uint64_t>(kMost / kNanosPerMicro)) {
      return absl::InvalidArgumentError(absl::StrCat("start times from ", least, " us on"));
    }
    origin_us_ = least;
    times_.clock_origin_ns = static_cast<std::int64_t>(least) * kNanosPerMicro;
    return absl::OkStatus();
  }

  // An operation without a start, where others count from some clock's start: with the one before
  // it in the file.
  absl::Status Set(const DraftOp& op, Picoseconds before, OpTime& time) const {
    OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t duration, DurationOf(op));
    if (!HasStart(op) && origin_us_ > 0) {
      time.start = before;
      time.end = before + Picoseconds(duration);
      return absl::OkStatus();
    }
    const std::uint64_t start_us = std::max(op.start_us, origin_us_) - origin_us_;
    if (op.start_ps > kMost / 4 || start_us > kMostMicros) {
      return TimeError(op, "starts more than 26 days after the first");
    }
    time.start = Picoseconds(
        op.start_ps >= 0 ? op.start_ps : static_cast<std::int64_t>(start_us) * kPicosPerMicro);
    time.end = time.start + Picoseconds(duration);
    return absl::OkStatus();
  }

  const Draft& draft_;
  Times& times_;
  std::uint64_t origin_us_ = 0;
};

// Starts as early as dependencies allow and, on a thread or stream, the operation before it. Their
// order is the file's, as far as dependencies allow: of those that are free, the first comes first.
// What a cycle holds up comes last, in the file's order.
class Earliest {
 public:
  Earliest(const Draft& draft, const Edges& edges, Times& times)
      : draft_(draft), edges_(edges), times_(times), waits_(draft.ops.size(), 0) {}

  absl::Status Run() {
    MakeSuccessors();
    times_.order.clear();
    for (std::uint32_t op = 0; op < waits_.size(); ++op) {
      if (waits_[op] == 0) free_.push(op);
    }
    while (!free_.empty()) {
      const std::uint32_t op = free_.top();
      free_.pop();
      OPTIMUS_RETURN_IF_ERROR(Place(op));
      for (std::size_t i = first_[op]; i < first_[op + 1]; ++i) {
        if (--waits_[successors_[i]] == 0) free_.push(successors_[i]);
      }
    }
    if (times_.order.size() < waits_.size()) {
      for (std::uint32_t op = 0; op < waits_.size(); ++op) {
        if (waits_[op] > 0) OPTIMUS_RETURN_IF_ERROR(Place(op));
      }
    }
    std::stable_sort(
        times_.order.begin(), times_.order.end(),
        [&](std::uint32_t a, std::uint32_t b) { return times_.ops[a].key < times_.ops[b].key; });
    return absl::OkStatus();
  }

 private:
  void MakeSuccessors() {
    first_.assign(draft_.ops.size() + 2, 0);
    for (const Edge& edge : edges_.edges) ++first_[edge.op + 2];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    successors_.resize(edges_.edges.size());
    for (std::uint32_t op = 0; op < draft_.ops.size(); ++op) {
      waits_[op] = edges_.Of(op).size();
      for (const Edge& edge : edges_.Of(op)) successors_[first_[edge.op + 1]++] = op;
    }
  }

  absl::Status Place(std::uint32_t id) {
    const DraftOp& op = draft_.ops[id];
    OpTime& time = times_.ops[id];
    for (const Edge& edge : edges_.Of(id)) {
      const OpTime& earlier = times_.ops[edge.op];
      time.key = std::max(time.key, earlier.end == kUntimed ? earlier.key : earlier.end);
    }
    Picoseconds* const lane_free = IsSerial(op.lane) ? &lanes_[{op.lane, op.lane_id}] : nullptr;
    if (lane_free != nullptr) time.key = std::max(time.key, *lane_free);
    times_.order.push_back(id);
    OPTIMUS_ASSIGN_OR_RETURN(const std::int64_t duration, DurationOf(op));
    if (duration > kMost / 4 - time.key.value()) {
      return TimeError(op, "ends more than 26 days after the first operation's start");
    }
    if (times_.timed && !IsOpen(op)) {
      time.start = time.key;
      time.end = time.start + Picoseconds(duration);
    }
    if (lane_free != nullptr) *lane_free = std::max(time.key, time.end);
    return absl::OkStatus();
  }

  const Draft& draft_;
  const Edges& edges_;
  Times& times_;
  std::vector<std::size_t> waits_, first_;
  std::vector<std::uint32_t> successors_;
  absl::flat_hash_map<std::pair<LaneClass, std::int64_t>, Picoseconds> lanes_;  // free from then on
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free_;
};

}  // namespace

bool HasStartTimes(const Draft& draft) {
  return std::any_of(draft.ops.begin(), draft.ops.end(), HasStart);
}

absl::StatusOr<Times> WorkOutTimes(const Draft& draft, const Edges& edges) {
  Times times;
  times.ops.resize(draft.ops.size());
  times.order.resize(draft.ops.size());
  times.recorded = HasStartTimes(draft);
  if (times.recorded) {
    OPTIMUS_RETURN_IF_ERROR(Recorded(draft, times).Run());
    return times;
  }
  times.timed = std::any_of(draft.ops.begin(), draft.ops.end(), [](const DraftOp& op) {
    return op.duration_us > 0 || op.duration_ps > 0;
  });
  OPTIMUS_RETURN_IF_ERROR(Earliest(draft, edges, times).Run());
  return times;
}

}  // namespace optimus::traces::chakra
