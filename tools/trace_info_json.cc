#include <utility>

#include "tools/json_pieces.h"
#include "tools/trace_info.h"

namespace optimus::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr JsonField kFields[] = {
    {"version", "of optimus"},
    {"files", "that were read"},
    {"format", "kineto, chakra, optimus timeline or optimus chrome json"},
    {"world", "ranks of the job; null where the trace does not say"},
    {"ranks", "that are recorded"},
    {"stood_for", "how many ranks they stand for, themselves included (a folded simulation)"},
    {"missing", "how many ranks are neither recorded nor stood for"},
    {"missing_ranks", "the first 64 of them, where it is known which"},
    {"folded", "whether recorded ranks stand for the missing members of their groups"},
    {"one_clock", "whether the ranks have one clock; else nothing is aligned here"},
    {"collectives_wait_inside",
     "whether a member of a collective starts at once and waits inside for the others"},
    {"messages", "rendezvous: both sides must be there; eager: a send needs no posted receive"},
    {"step_s", "longest recorded step of a rank; null where no operation has a time"},
    {"operations", "over recorded ranks"},
    {"untimed", "of these, without times"},
    {"dependencies", "waits that the trace itself says"},
    {"steps",
     "for each of the files: number, ranks that have it, shortest_s and longest_s of them"},
    {"lanes",
     "for each: rank, name, kind (host_thread, stream), in_order, operations, untimed, busy_s "
     "(time "
     "in which at least one operation runs)"},
    {"communication",
     "for each kind: kind, operations, time_s (sums over recorded ranks), and how many of them do "
     "not say their group (without_group), peer (without_peer) or size (without_bytes)"},
    {"groups",
     "for each: name, description, role, size (null: not known), recorded (members that are; null: "
     "not known), collectives (the most of one rank), bytes (their sum), without_bytes (how many "
     "of them do not say)"},
    {"remarks",
     "what the trace does not say: what, effect (what became of it), rank (-1: none), name and "
     "time_s of the first, count"},
};

Json OrNull(bool known, Json value) { return known ? std::move(value) : Json(nullptr); }

Json StepsJson(const TraceInfo& info) {
  Json list = Json::array();
  for (const StepInfo& step : info.steps) {
    list.push_back({{"number", step.number},
                    {"ranks", step.ranks},
                    {"shortest_s", ToSeconds(step.shortest)},
                    {"longest_s", ToSeconds(step.longest)}});
  }
  return list;
}

Json LanesJson(const TraceInfo& info) {
  Json list = Json::array();
  for (const LaneInfo& lane : info.lanes) {
    list.push_back({{"rank", lane.rank},
                    {"name", lane.name},
                    {"kind", lane.host ? "host_thread" : "stream"},
                    {"in_order", lane.in_order},
                    {"operations", lane.operations},
                    {"untimed", lane.untimed},
                    {"busy_s", ToSeconds(lane.busy)}});
  }
  return list;
}

Json KindsJson(const TraceInfo& info) {
  Json list = Json::array();
  for (const KindInfo& kind : info.kinds) {
    list.push_back({{"kind", ToString(kind.kind)},
                    {"operations", kind.operations},
                    {"time_s", ToSeconds(kind.time)},
                    {"without_group", kind.without_group},
                    {"without_peer", kind.without_peer},
                    {"without_bytes", kind.without_bytes}});
  }
  return list;
}

Json GroupsJson(const TraceInfo& info) {
  Json list = Json::array();
  for (const GroupInfo& group : info.groups) {
    list.push_back({{"name", group.name},
                    {"description", group.description},
                    {"role", group.role},
                    {"size", OrNull(group.size > 0, group.size)},
                    {"recorded", OrNull(group.members_known, group.recorded)},
                    {"collectives", group.collectives},
                    {"bytes", group.bytes.value()},
                    {"without_bytes", group.without_bytes}});
  }
  return list;
}

Json RemarksJson(const TraceInfo& info) {
  Json list = Json::array();
  for (const traces::Remark& remark : info.remarks) {
    list.push_back({{"what", remark.what},
                    {"effect", remark.effect},
                    {"rank", remark.rank},
                    {"name", remark.name},
                    {"time_s", ToSeconds(remark.time)},
                    {"count", remark.count}});
  }
  return list;
}

}  // namespace

std::string TraceInfoJson(const TraceInfo& info) {
  Json json;
  json["version"] = OPTIMUS_VERSION;
  json["files"] = info.files;
  json["format"] = info.format;
  json["world"] = OrNull(info.world > 0, info.world);
  json["ranks"] = info.ranks;
  json["stood_for"] = info.stood_for;
  json["missing"] = info.missing_count;
  json["missing_ranks"] = info.missing;
  json["folded"] = info.folded;
  json["one_clock"] = info.one_clock;
  json["collectives_wait_inside"] = info.waits_inside;
  json["messages"] = info.rendezvous ? "rendezvous" : "eager";
  json["step_s"] = OrNull(info.untimed < info.operations, ToSeconds(info.step));
  json["operations"] = info.operations;
  json["untimed"] = info.untimed;
  json["dependencies"] = info.dependencies;
  json["steps"] = StepsJson(info);
  json["lanes"] = LanesJson(info);
  json["communication"] = KindsJson(info);
  json["groups"] = GroupsJson(info);
  json["remarks"] = RemarksJson(info);
  return DumpJson(json);
}

absl::Span<const JsonField> TraceInfoJsonFields() { return kFields; }

}  // namespace optimus::tools
