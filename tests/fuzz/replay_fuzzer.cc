// What a reader takes, the replay must take: rebuilt, run again, accounted and explained without a
// crash, an overflow or a hole in a path. Input: a Kineto trace or Chrome JSON of ours.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "traces/kineto/kineto.h"
#include "traces/replay/account.h"
#include "traces/replay/gaps.h"
#include "traces/replay/path.h"
#include "traces/replay/sensitivity.h"
#include "traces/replay/what_if.h"

namespace {

using optimus::Picoseconds;

void Require(bool held) {
  if (!held) std::abort();
}

void CheckRun(const optimus::traces::ReplayGraph& graph,
              const optimus::traces::Durations& durations) {
  using namespace optimus::traces;
  const OpClasses classes = ClassesOf(graph);
  const Run run = Replay(graph, durations);
  for (const TimeAccount& rank : AccountOf(graph, classes, run)) {
    Picoseconds sum = rank.compute + rank.copy + rank.waiting + rank.idle;
    for (const Picoseconds exposed : rank.exposed) sum += exposed;
    Require(sum == run.step);
  }
  Picoseconds at;
  for (const PathPiece& piece : CriticalPath(graph, run)) {
    Require(piece.from == at);
    at = piece.to;
  }
  Require(at == run.step);
  LongestGaps(graph, run, 4, -1);
  Sensitivities(graph, classes, durations);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace optimus::traces;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  auto recording = ReadKinetoText(text, "fuzz", {});
  if (!recording.ok()) return 0;
  const auto graph = Rebuild(*std::move(recording));
  if (!graph.ok()) return 0;
  const Durations durations = RecordedDurations(*graph);
  CheckRun(*graph, durations);
  WhatIf what_if;
  what_if.compute_scale = 1000;
  const auto changed = Apply(*graph, ClassesOf(*graph), what_if, durations);
  if (changed.ok()) CheckRun(*graph, changed->durations);
  return 0;
}
