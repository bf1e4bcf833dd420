#include "tools/trace_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/printable.h"
#include "tools/text_pieces.h"

namespace optimus::tools {
namespace {

constexpr std::size_t kNameBytes = 60;

std::string RanksText(const traces::Recording& recording) {
  std::string text = Count(static_cast<std::int64_t>(recording.ranks.size()), "rank", "ranks");
  if (recording.world > static_cast<std::int32_t>(recording.ranks.size())) {
    absl::StrAppend(&text, " of ", recording.world);
    std::int64_t stood_for = 0;
    for (const traces::RecordedRank& rank : recording.ranks) stood_for += rank.stands_for;
    if (recording.folded) {
      absl::StrAppend(&text, stood_for == recording.world
                                 ? ", each standing for the GPUs that do the same"
                                 : ", standing for the others of their groups");
    }
  }
  return text;
}

std::string FilesText(const std::vector<std::string>& files) {
  constexpr std::size_t kShown = 2;
  if (files.size() <= kShown) return absl::StrJoin(files, ", ");
  return absl::StrCat(files.front(), ", ... ", files.back(), " (", files.size(), " files)");
}

// Microseconds with a sign, or seconds where clocks are far apart.
std::string CorrectionText(const traces::ClockCorrection& c) {
  if (c.transfers == 0)
    return absl::StrCat("rank ", c.rank, " none: no collective of it ends with others");
  const double us = ToMicroseconds(c.correction);
  const std::string size = us > -1e6 && us < 1e6 ? absl::StrFormat("%+.3f us", us)
                                                 : absl::StrFormat("%+.6f s", us / 1e6);
  return absl::StrFormat("rank %d %s (spread %.3f us, %s)", c.rank, size, ToMicroseconds(c.spread),
                         Count(c.transfers, "transfer", "transfers"));
}

void AppendClocks(const traces::ReplayGraph& graph, std::string& out) {
  if (graph.corrections.empty()) return;
  std::vector<traces::ClockCorrection> moved;
  for (const traces::ClockCorrection& c : graph.corrections) {
    if (c.correction != Picoseconds(0) || c.transfers == 0) moved.push_back(c);
  }
  if (moved.empty()) {
    return AppendFact("clocks", "agree: collectives end at the same time on all ranks", out);
  }
  constexpr std::size_t kShown = 8;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(moved.size(), kShown); ++i) {
    texts.push_back(CorrectionText(moved[i]));
  }
  if (moved.size() > kShown) texts.push_back(absl::StrCat(moved.size() - kShown, " more (--json)"));
  AppendFact("clocks",
             absl::StrCat("corrected so that collectives end at the same time: ",
                          absl::StrJoin(texts, ", ")),
             out);
}

std::string UnpairedText(const traces::Unpaired& all, const TimeUnit& unit) {
  const traces::Unpaired::Operation& first = all.operations.front();
  std::string text = absl::StrCat(all.count, " x ", all.what, ": ", all.effect, "; ",
                                  all.count > 1 ? "the first: " : "", "rank ", first.rank, ", ",
                                  CutMiddle(Printable(first.name), kNameBytes));
  if (all.count > 0) absl::StrAppend(&text, ", at ", unit.WithName(first.time));
  return text;
}

}  // namespace

void AppendTraceFacts(const TracedStep& traced, std::string& out) {
  const traces::Recording& recording = traced.graph.recording;
  std::string text = absl::StrCat(
      FilesText(traced.files), ": ", recording.format, ", ", RanksText(recording), ", ",
      Count(static_cast<std::int64_t>(traced.graph.tasks.size()), "operation", "operations"));
  if (traced.step.has_value()) absl::StrAppend(&text, ", step ", *traced.step);
  AppendFact("trace", text, out);
  AppendClocks(traced.graph, out);
  if (traced.profile.empty()) return;
  AppendFact("profile", absl::StrCat(traced.profile, " (hash ", traced.profile_hash, ")"), out);
}

void AppendUnpaired(const traces::ReplayGraph& graph, std::string& out) {
  const TimeUnit unit(graph.step);
  std::vector<std::string> lines;
  for (const traces::Unpaired& all : graph.unpaired) lines.push_back(UnpairedText(all, unit));
  for (const traces::Remark& remark : graph.recording.remarks) {
    std::string line = absl::StrCat(remark.count, " x ", remark.what, ": ", remark.effect);
    if (remark.rank >= 0) absl::StrAppend(&line, "; rank ", remark.rank);
    if (!remark.name.empty()) {
      absl::StrAppend(&line, remark.count > 1 ? ", the first: " : ", ",
                      CutMiddle(Printable(remark.name), kNameBytes));
    }
    lines.push_back(std::move(line));
  }
  AppendBullets("not paired, or not said by the trace:", lines, out);
}

}  // namespace optimus::tools
