#include "tools/explain_json.h"

#include "tools/explain_words.h"
#include "tools/json_pieces.h"
#include "tools/trace_json.h"

namespace optimus::tools {
namespace {

constexpr JsonField kFields[] = {
    {"version", "of optimus"},
    {"files",
     "that the trace was read from; format, ranks, world, folded, step_number, operations, "
     "clocks, unpaired and remarks as `optimus replay` says them"},
    {"step_s", "of the replay, which is that of the recording where it has times"},
    {"critical_path",
     "stretches on one rank each, in time order, without holes from 0 to step_s: rank, from_s, "
     "to_s, "
     "operations, first and last (names), waited_for (what leads from the stretch before to this "
     "one: lane, dependency, launch, event, synchronisation, message, last_arrival, start), shares "
     "(of its time, as critical_path_shares)"},
    {"critical_path_shares", "of it by rank and class: rank, class, time_s, longest (name)"},
    {"gaps",
     "the longest times without a kernel: rank, from_s, to_s, next (the kernel that ran next; "
     "absent "
     "at the end of the step), causes (by rank and class, as in critical_path_shares; they add up "
     "to "
     "the gap)"},
    {"sensitivity",
     "what the step would be if a class of operation took no time: class, step_s, saved_s"},
};

nlohmann::ordered_json ShareJson(const ExplainReport& report, const traces::Share& share) {
  nlohmann::ordered_json json;
  json["rank"] = share.rank;
  json["class"] = ClassName(report.traced.classes, share.cls, share.kind);
  json["time_s"] = ToSeconds(share.time);
  if (share.longest != traces::kNoTask) json["longest"] = report.traced.graph.name(share.longest);
  return json;
}

nlohmann::ordered_json SharesJson(const ExplainReport& report,
                                  const std::vector<traces::Share>& shares) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const traces::Share& share : shares) all.push_back(ShareJson(report, share));
  return all;
}

nlohmann::ordered_json PathJson(const ExplainReport& report) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Stretch& s : report.path) {
    nlohmann::ordered_json json;
    json["rank"] = s.rank;
    json["from_s"] = ToSeconds(s.from);
    json["to_s"] = ToSeconds(s.to);
    json["operations"] = s.operations;
    json["first"] = report.traced.graph.name(s.first);
    json["last"] = report.traced.graph.name(s.last);
    json["waited_for"] = ReasonName(s.reason);
    json["shares"] = SharesJson(report, s.shares);
    all.push_back(std::move(json));
  }
  return all;
}

nlohmann::ordered_json GapsJson(const ExplainReport& report) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < report.gaps.size(); ++i) {
    const traces::IdleGap& gap = report.gaps[i];
    nlohmann::ordered_json json;
    json["rank"] = report.traced.graph.recording.ranks[static_cast<std::size_t>(gap.rank)].rank;
    json["from_s"] = ToSeconds(gap.from);
    json["to_s"] = ToSeconds(gap.to);
    if (gap.next != traces::kNoTask) json["next"] = report.traced.graph.name(gap.next);
    json["causes"] = SharesJson(report, report.gap_shares[i]);
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace

absl::Span<const JsonField> ExplainJsonFields() { return kFields; }

std::string ExplainJson(const ExplainReport& report) {
  nlohmann::ordered_json json;
  AddTraceFacts(report.traced, json);
  json["step_s"] = ToSeconds(report.run.step);
  json["critical_path"] = PathJson(report);
  json["critical_path_shares"] = SharesJson(report, report.path_shares);
  json["gaps"] = GapsJson(report);
  json["sensitivity"] = nlohmann::ordered_json::array();
  for (const traces::Sensitivity& s : report.sensitivities) {
    json["sensitivity"].push_back({{"class", s.name},
                                   {"step_s", ToSeconds(s.step)},
                                   {"saved_s", ToSeconds(report.run.step - s.step)}});
  }
  return DumpJson(json);
}

}  // namespace optimus::tools
