#include "tools/traced_step.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/input_files.h"
#include "tools/out_of_memory.h"
#include "tools/report.h"

namespace optimus::tools {
namespace {

// The profiler's step that was read: the one that the first rank's window is.
std::optional<std::int64_t> StepOf(const traces::Recording& recording) {
  if (recording.ranks.empty() || recording.one_clock) return std::nullopt;
  const traces::RecordedRank& first = recording.ranks.front();
  for (const traces::StepMark& mark : recording.steps) {
    if (mark.rank == first.rank && mark.start == first.step_start && mark.end == first.step_end) {
      return mark.number;
    }
  }
  return std::nullopt;
}

absl::StatusOr<std::int32_t> RankIndex(const traces::Recording& recording, std::int32_t rank) {
  if (rank < 0) return -1;
  for (std::size_t i = 0; i < recording.ranks.size(); ++i) {
    if (recording.ranks[i].rank == rank) return static_cast<std::int32_t>(i);
  }
  std::string known;
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < recording.ranks.size() && i < kShown; ++i) {
    absl::StrAppend(&known, i == 0 ? "" : ", ", recording.ranks[i].rank);
  }
  if (recording.ranks.size() > kShown) absl::StrAppend(&known, ", ...");
  return absl::InvalidArgumentError(
      absl::StrCat("--rank=", rank, ": was not recorded; the trace has rank ", known));
}

}  // namespace

absl::StatusOr<TracedStep> RebuildStep(const std::string& name, traces::Recording recording,
                                       const ParsedWhatIf& what_if, std::int32_t rank) {
  TracedStep traced;
  traced.version = OPTIMUS_VERSION;
  traced.files = SourcesOf(recording);
  traced.step = StepOf(recording);
  traced.rank = rank;
  if (what_if.profile.has_value()) {
    traced.profile = what_if.profile->name();
    traced.profile_hash = ProfileHash(*what_if.profile);
  }
  absl::StatusOr<traces::ReplayGraph> graph =
      CatchOutOfMemory(name, "rebuilding", [&] { return Rebuild(std::move(recording)); });
  if (!graph.ok()) return NameFile(name, graph.status());
  traced.graph = *std::move(graph);
  OPTIMUS_ASSIGN_OR_RETURN(traced.rank_index, RankIndex(traced.graph.recording, rank));
  traced.classes = ClassesOf(traced.graph);
  return traced;
}

absl::StatusOr<traces::Durations> BaseDurations(const traces::ReplayGraph& graph,
                                                const CostModel* costs) {
  if (graph.timed) return RecordedDurations(graph);
  if (costs != nullptr) return PriceUntimed(graph, *costs);
  return absl::InvalidArgumentError(
      "the trace has no times; hint: give a hardware profile to price its operations (--profile)");
}

}  // namespace optimus::tools
