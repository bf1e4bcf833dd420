#include "tools/replay_json.h"

#include "tools/json_pieces.h"
#include "tools/trace_json.h"

namespace optimus::tools {
namespace {

constexpr JsonField kFields[] = {
    {"version", "of optimus"},
    {"files", "that the trace was read from"},
    {"format", "kineto, chakra, optimus timeline, ..."},
    {"ranks", "that were recorded"},
    {"world", "ranks of the job, where the trace says it"},
    {"folded", "whether recorded ranks stand for others"},
    {"step_number", "of the profiler's step that was replayed, where there are steps"},
    {"operations", "of all recorded ranks"},
    {"clocks",
     "of every rank but the reference: rank, correction_s (added to its times), spread_s (median "
     "distance of the ends that it was found from), transfers (how many)"},
    {"unpaired",
     "operations without partners, by kind: what, effect, count, operations (the first 100: rank, "
     "name, time_s from the start of the step)"},
    {"remarks", "of the reader: what, effect, count, rank, name (of the first)"},
    {"profile", "name; only where one was given"},
    {"profile_hash", "of the profile's content (FNV-1a, 64 bits, hexadecimal)"},
    {"rank", "whose times; absent: the mean over GPUs"},
    {"recorded",
     "step_s, compute_s, exposed_s (by class of communication), waiting_s (for other ranks), "
     "copy_s "
     "(exposed copies), idle_s; these add up to step_s. total_s: by class, overlapped or not. "
     "Absent where the trace has no times"},
    {"replayed", "the same of the replay without changes"},
    {"what_if", "the same of the replay with the changes; absent without changes"},
    {"changes", "of the what-if, in words"},
    {"cautions", "what the what-if cannot know, in words"},
    {"kept",
     "communication whose recorded time was kept though a link changed: what, count, time_s (over "
     "the recorded ranks)"},
};

nlohmann::ordered_json ColumnJson(const ReplayReport& report, const ReplayColumn& column) {
  nlohmann::ordered_json json;
  json["step_s"] = ToSeconds(column.run.step);
  json["compute_s"] = ToSeconds(column.times.compute);
  json["exposed_s"] = nlohmann::ordered_json::object();
  json["waiting_s"] = ToSeconds(column.times.waiting);
  json["copy_s"] = ToSeconds(column.times.copy);
  json["idle_s"] = ToSeconds(column.times.idle);
  json["total_s"] = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < report.traced.classes.names.size(); ++i) {
    const std::string& name = report.traced.classes.names[i];
    json["total_s"][name] = ToSeconds(column.times.total[i]);
    if (report.traced.classes.kinds[i] != traces::OpKind::kCommunication) continue;
    json["exposed_s"][name] = ToSeconds(column.times.exposed[i]);
  }
  return json;
}

}  // namespace

absl::Span<const JsonField> ReplayJsonFields() { return kFields; }

std::string ReplayJson(const ReplayReport& report) {
  nlohmann::ordered_json json;
  AddTraceFacts(report.traced, json);
  if (!report.traced.profile.empty()) {
    json["profile"] = report.traced.profile;
    json["profile_hash"] = report.traced.profile_hash;
  }
  if (report.traced.rank >= 0) json["rank"] = report.traced.rank;
  if (report.recorded) json["recorded"] = ColumnJson(report, *report.recorded);
  json["replayed"] = ColumnJson(report, report.replayed);
  if (report.what_if) {
    json["what_if"] = ColumnJson(report, *report.what_if);
    json["changes"] = report.changes;
    json["cautions"] = report.cautions;
    json["kept"] = nlohmann::ordered_json::array();
    for (const traces::KeptTime& kept : report.kept) {
      json["kept"].push_back(
          {{"what", kept.what}, {"count", kept.count}, {"time_s", ToSeconds(kept.time)}});
    }
  }
  return DumpJson(json);
}

}  // namespace optimus::tools
