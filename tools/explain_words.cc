#include "tools/explain_words.h"

#include "absl/strings/str_cat.h"
#include "tools/printable.h"
#include "tools/text_pieces.h"

namespace optimus::tools {

std::string OpName(const traces::ReplayGraph& graph, traces::TaskId task) {
  constexpr std::size_t kBytes = 60;
  return CutMiddle(Printable(graph.name(task)), kBytes);
}

std::string ClassName(const traces::OpClasses& classes, std::int32_t cls, traces::PieceKind kind) {
  switch (kind) {
    case traces::PieceKind::kWork:
      return classes.names[static_cast<std::size_t>(cls)];
    case traces::PieceKind::kGap:
      return "launch gaps and what the trace does not say";
    case traces::PieceKind::kHost:
      return "host between calls";
    case traces::PieceKind::kStart:
      return "before the rank's step began";
    case traces::PieceKind::kEnd:
      return "end of the step, behind the last operation";
  }
  return "?";
}

const char* ReasonText(traces::BoundBy reason) {
  switch (reason) {
    case traces::BoundBy::kStart:
      return "the start of the step";
    case traces::BoundBy::kLane:
      return "the operation before it on its stream";
    case traces::BoundBy::kAfter:
      return "a dependency";
    case traces::BoundBy::kLaunch:
      return "its launch";
    case traces::BoundBy::kEvent:
      return "an event of another stream";
    case traces::BoundBy::kEndAfter:
      return "what it synchronises with";
    case traces::BoundBy::kMessage:
      return "the message";
    case traces::BoundBy::kMember:
      return "the last rank to arrive";
  }
  return "?";
}

const char* ReasonName(traces::BoundBy reason) {
  switch (reason) {
    case traces::BoundBy::kStart:
      return "start";
    case traces::BoundBy::kLane:
      return "lane";
    case traces::BoundBy::kAfter:
      return "dependency";
    case traces::BoundBy::kLaunch:
      return "launch";
    case traces::BoundBy::kEvent:
      return "event";
    case traces::BoundBy::kEndAfter:
      return "synchronisation";
    case traces::BoundBy::kMessage:
      return "message";
    case traces::BoundBy::kMember:
      return "last_arrival";
  }
  return "?";
}

std::string ShareText(const ExplainReport& report, const traces::Share& share, std::int32_t rank) {
  const TimeUnit unit(report.run.step);
  std::string text = absl::StrCat(unit.WithName(share.time), " ",
                                  ClassName(report.traced.classes, share.cls, share.kind));
  // A transfer is of all its members, whichever rank the path came by.
  const bool shared =
      share.longest != traces::kNoTask && report.traced.graph.tasks[share.longest].transfer >= 0;
  if (share.rank != rank && !shared) absl::StrAppend(&text, " on rank ", share.rank);
  if (share.kind == traces::PieceKind::kWork && share.longest != traces::kNoTask) {
    absl::StrAppend(&text, " (", OpName(report.traced.graph, share.longest), ")");
  }
  return text;
}

}  // namespace optimus::tools
