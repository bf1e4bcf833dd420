#include "traces/chakra/edges.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::traces::chakra {
namespace {

constexpr std::size_t kMostEdges = std::size_t{1} << 31;

absl::Status TooMany() {
  return absl::InvalidArgumentError(
      "metadata nodes that depend on too many others, which too many others depend on");
}

class Resolver {
 public:
  Resolver(const Draft& draft, bool with_control, std::int32_t rank, const Recording& recording,
           RecordingTables& tables)
      : draft_(draft),
        with_control_(with_control),
        rank_(rank),
        recording_(recording),
        tables_(tables),
        seen_ops_(draft.ops.size(), 0),
        seen_skipped_(draft.skipped_parents.size(), 0),
        steps_left_(1'000'000 + 16 * (draft.ops.size() + draft.parents.size())) {}

  absl::StatusOr<Edges> Run() {
    Edges result;
    result.first.reserve(draft_.ops.size() + 1);
    result.edges.reserve(draft_.parents.size());
    for (std::uint32_t op = 0; op < draft_.ops.size(); ++op) {
      result.first.push_back(result.edges.size());
      OPTIMUS_RETURN_IF_ERROR(AddEdges(op, result.edges));
      if (result.edges.size() > kMostEdges) return TooMany();
    }
    result.first.push_back(result.edges.size());
    return result;
  }

 private:
  // First all that data dependencies alone lead to: what is reached again by a control dependency
  // is a data dependency still.
  absl::Status AddEdges(std::uint32_t op, std::vector<Edge>& edges) {
    const std::size_t begin = edges.size();
    op_ = op;
    Open(draft_.op_parents[op], false);
    for (const bool control : {false, true}) {
      std::vector<std::uint64_t>& open = control ? open_control_ : open_data_;
      while (!open.empty()) {
        if (steps_left_-- == 0) return TooMany();
        const std::uint64_t id = open.back();
        open.pop_back();
        Visit(id, control, edges);
      }
    }
    std::sort(edges.begin() + static_cast<std::ptrdiff_t>(begin), edges.end(),
              [](const Edge& a, const Edge& b) { return a.op < b.op; });
    return absl::OkStatus();
  }

  void Open(const Parents& parents, bool by_control) {
    const auto data = draft_.parents.begin() + static_cast<std::ptrdiff_t>(parents.first);
    const auto control = data + static_cast<std::ptrdiff_t>(parents.data);
    std::vector<std::uint64_t>& open = by_control ? open_control_ : open_data_;
    open.insert(open.end(), data, control);
    if (!with_control_) return;
    open_control_.insert(open_control_.end(), control,
                         control + static_cast<std::ptrdiff_t>(parents.control));
  }

  void Visit(std::uint64_t id, bool control, std::vector<Edge>& edges) {
    const auto found = draft_.index.find(id);
    if (found == draft_.index.end()) {
      // Converters leave out the nodes of Python calls, but not their ids in ctrl_deps.
      Note(control ? "control dependency on a node that is not there"
                   : "dependency on a node that is not there",
           "left out: does not wait for it");
    } else if ((found->second & Draft::kSkipped) != 0) {
      const std::uint32_t skipped = found->second & ~Draft::kSkipped;
      if (seen_skipped_[skipped] == op_ + 1) return;
      seen_skipped_[skipped] = op_ + 1;
      Open(draft_.skipped_parents[skipped], control);
    } else if (found->second == op_) {
      Note("operation that depends on itself", "left out: does not wait for itself");
    } else if (seen_ops_[found->second] != op_ + 1) {
      seen_ops_[found->second] = op_ + 1;
      edges.push_back({.op = found->second, .control = control});
    }
  }

  void Note(const char* what, const char* effect) {
    tables_.Note({.what = what,
                  .effect = effect,
                  .rank = rank_,
                  .name = recording_.names[static_cast<std::size_t>(draft_.ops[op_].name)],
                  .time = Picoseconds(0)});
  }

  const Draft& draft_;
  const bool with_control_;
  const std::int32_t rank_;
  const Recording& recording_;
  RecordingTables& tables_;
  // The operation at which it was last reached, + 1.
  std::vector<std::uint32_t> seen_ops_, seen_skipped_;
  std::vector<std::uint64_t> open_data_, open_control_;
  std::size_t steps_left_;
  std::uint32_t op_ = 0;
};

// How many operations a circle keeps from ever starting.
std::size_t HeldUp(const Edges& edges) {
  const std::size_t count = edges.first.size() - 1;
  std::vector<std::size_t> waits(count), first(count + 2, 0);
  for (const Edge& edge : edges.edges) ++first[edge.op + 2];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<std::uint32_t> successors(edges.edges.size()), free;
  for (std::uint32_t op = 0; op < count; ++op) {
    waits[op] = edges.Of(op).size();
    if (waits[op] == 0) free.push_back(op);
    for (const Edge& edge : edges.Of(op)) successors[first[edge.op + 1]++] = op;
  }
  std::size_t started = 0;
  for (; !free.empty(); ++started) {
    const std::uint32_t op = free.back();
    free.pop_back();
    for (std::size_t i = first[op]; i < first[op + 1]; ++i) {
      if (--waits[successors[i]] == 0) free.push_back(successors[i]);
    }
  }
  return count - started;
}

}  // namespace

bool ControlGoesRound(const Edges& edges) {
  const std::size_t held_up = HeldUp(edges);
  return held_up > 0 && held_up > HeldUp(WithoutControl(edges));
}

Edges WithoutControl(const Edges& edges) {
  Edges data;
  data.first.reserve(edges.first.size());
  for (std::size_t op = 0; op + 1 < edges.first.size(); ++op) {
    data.first.push_back(data.edges.size());
    for (const Edge& edge : edges.Of(op)) {
      if (!edge.control) data.edges.push_back(edge);
    }
  }
  data.first.push_back(data.edges.size());
  return data;
}

absl::StatusOr<Edges> ResolveEdges(const Draft& draft, bool control_dependencies, std::int32_t rank,
                                   const Recording& recording, RecordingTables& tables) {
  return Resolver(draft, control_dependencies, rank, recording, tables).Run();
}

}  // namespace optimus::traces::chakra
