#include "traces/kineto/chrome_header.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "simdjson.h"
#include "traces/kineto/chrome_clock.h"
#include "traces/kineto/chrome_json.h"
#include "traces/kineto/json_text.h"

namespace optimus::traces {
namespace {

const char* Bool(bool value) { return value ? "true" : "false"; }

void AppendLanes(std::string& out, const RecordedRank& rank) {
  const char* comma = "";
  for (const Lane& lane : rank.lanes) {
    absl::StrAppend(&out, comma, "{\"name\":");
    AppendQuoted(out, lane.name);
    absl::StrAppend(&out, ",\"kind\":\"",
                    lane.kind == LaneKind::kHostThread ? "host_thread" : "stream",
                    "\",\"in_order\":", Bool(lane.in_order), ",\"id\":", lane.id, "}");
    comma = ",";
  }
}

void AppendRanks(std::string& out, const Recording& recording) {
  const char* comma = "";
  for (const RecordedRank& rank : recording.ranks) {
    absl::StrAppend(&out, comma, "\n{\"rank\":", rank.rank, ",\"stands_for\":", rank.stands_for,
                    ",\"clock_origin_ns\":", rank.clock_origin_ns,
                    ",\"step_start_ps\":", rank.step_start.value(),
                    ",\"step_end_ps\":", rank.step_end.value(), ",\"lanes\":[");
    AppendLanes(out, rank);
    out += "]}";
    comma = ",";
  }
}

void AppendGroups(std::string& out, const Recording& recording) {
  const char* comma = "";
  for (const CommunicatorGroup& group : recording.groups) {
    absl::StrAppend(&out, comma, "\n{\"name\":");
    AppendQuoted(out, group.name);
    out += ",\"description\":";
    AppendQuoted(out, group.description);
    out += ",\"role\":";
    AppendQuoted(out, group.role);
    absl::StrAppend(&out, ",\"size\":", group.size, ",\"ranks\":[", absl::StrJoin(group.ranks, ","),
                    "]}");
    comma = ",";
  }
}

void AppendRemarks(std::string& out, const Recording& recording) {
  const char* comma = "";
  for (const Remark& remark : recording.remarks) {
    absl::StrAppend(&out, comma, "\n{\"what\":");
    AppendQuoted(out, remark.what);
    out += ",\"effect\":";
    AppendQuoted(out, remark.effect);
    absl::StrAppend(&out, ",\"rank\":", remark.rank, ",\"name\":");
    AppendQuoted(out, remark.name);
    absl::StrAppend(&out, ",\"time_ps\":", remark.time.value(), ",\"count\":", remark.count, "}");
    comma = ",";
  }
}

void AppendStepsAndNames(std::string& out, const Recording& recording) {
  out += "],\n\"steps\":[";
  const char* comma = "";
  for (const StepMark& step : recording.steps) {
    absl::StrAppend(&out, comma, "{\"number\":", step.number, ",\"rank\":", step.rank,
                    ",\"start_ps\":", step.start.value(), ",\"end_ps\":", step.end.value(), "}");
    comma = ",";
  }
  out += "],\n\"names\":[";
  comma = "\n";
  for (const std::string& name : recording.names) {
    out += comma;
    AppendQuoted(out, name);
    comma = ",\n";
  }
}

}  // namespace

void AppendChromeHeader(std::string& out, const Recording& recording) {
  out += "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",";
  if (recording.ranks.size() == 1) {
    absl::StrAppend(&out, "\"distributedInfo\":{\"rank\":", recording.ranks.front().rank,
                    ",\"world_size\":", recording.world, "},");
  }
  absl::StrAppend(&out, "\"baseTimeNanoseconds\":", ClockBase(recording),
                  ",\n\"optimus\":{\"format_version\":", kChromeJsonVersion, ",\"format\":");
  AppendQuoted(out, recording.format);
  absl::StrAppend(&out, ",\"world\":", recording.world, ",\"messages\":\"",
                  recording.messages == MessageRule::kEager ? "eager" : "rendezvous",
                  "\",\"waits_inside\":", Bool(recording.waits_inside),
                  ",\"one_clock\":", Bool(recording.one_clock),
                  ",\"folded\":", Bool(recording.folded), ",\n\"ranks\":[");
  AppendRanks(out, recording);
  out += "],\n\"groups\":[";
  AppendGroups(out, recording);
  out += "],\n\"remarks\":[";
  AppendRemarks(out, recording);
  AppendStepsAndNames(out, recording);
  out += "]},\n\"traceEvents\":[";
}

namespace {

namespace dom = simdjson::dom;
using simdjson::SUCCESS;

absl::Status Wrong(absl::string_view field) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"optimus\": field \"", field, "\" is missing or of another type"));
}

absl::Status Get(dom::element object, const char* key, std::int64_t& out) {
  return object[key].get_int64().get(out) == SUCCESS ? absl::OkStatus() : Wrong(key);
}

absl::Status Get(dom::element object, const char* key, std::int32_t& out) {
  std::int64_t wide = 0;
  OPTIMUS_RETURN_IF_ERROR(Get(object, key, wide));
  if (wide < std::numeric_limits<std::int32_t>::min() ||
      wide > std::numeric_limits<std::int32_t>::max()) {
    return Wrong(key);
  }
  out = static_cast<std::int32_t>(wide);
  return absl::OkStatus();
}

absl::Status Get(dom::element object, const char* key, Picoseconds& out) {
  std::int64_t value = 0;
  OPTIMUS_RETURN_IF_ERROR(Get(object, key, value));
  out = Picoseconds(value);
  return absl::OkStatus();
}

absl::Status Get(dom::element object, const char* key, bool& out) {
  return object[key].get_bool().get(out) == SUCCESS ? absl::OkStatus() : Wrong(key);
}

absl::Status Get(dom::element object, const char* key, std::string& out) {
  std::string_view text;
  if (object[key].get_string().get(text) != SUCCESS) return Wrong(key);
  out = std::string(text);
  return absl::OkStatus();
}

// `read` for each element of the array `key`.
template <class F>
absl::Status ForEach(dom::element object, const char* key, const F& read) {
  dom::array array;
  if (object[key].get_array().get(array) != SUCCESS) return Wrong(key);
  for (const dom::element element : array) OPTIMUS_RETURN_IF_ERROR(read(element));
  return absl::OkStatus();
}

absl::Status ReadLane(dom::element json, Lane& lane) {
  std::string kind;
  OPTIMUS_RETURN_IF_ERROR(Get(json, "name", lane.name));
  OPTIMUS_RETURN_IF_ERROR(Get(json, "kind", kind));
  if (kind != "stream" && kind != "host_thread") return Wrong("kind");
  lane.kind = kind == "stream" ? LaneKind::kStream : LaneKind::kHostThread;
  OPTIMUS_RETURN_IF_ERROR(Get(json, "in_order", lane.in_order));
  return Get(json, "id", lane.id);
}

absl::Status ReadRank(dom::element json, RecordedRank& rank) {
  OPTIMUS_RETURN_IF_ERROR(Get(json, "rank", rank.rank));
  OPTIMUS_RETURN_IF_ERROR(Get(json, "stands_for", rank.stands_for));
  OPTIMUS_RETURN_IF_ERROR(Get(json, "clock_origin_ns", rank.clock_origin_ns));
  OPTIMUS_RETURN_IF_ERROR(Get(json, "step_start_ps", rank.step_start));
  OPTIMUS_RETURN_IF_ERROR(Get(json, "step_end_ps", rank.step_end));
  return ForEach(json, "lanes",
                 [&rank](dom::element lane) { return ReadLane(lane, rank.lanes.emplace_back()); });
}

absl::Status ReadGroup(dom::element json, CommunicatorGroup& group) {
  OPTIMUS_RETURN_IF_ERROR(Get(json, "name", group.name));
  OPTIMUS_RETURN_IF_ERROR(Get(json, "description", group.description));
  OPTIMUS_RETURN_IF_ERROR(Get(json, "role", group.role));
  OPTIMUS_RETURN_IF_ERROR(Get(json, "size", group.size));
  return ForEach(json, "ranks", [&group](dom::element rank) {
    std::int64_t number = -1;
    if (rank.get_int64().get(number) != SUCCESS || number < 0 ||
        number > std::numeric_limits<std::int32_t>::max()) {
      return Wrong("ranks");
    }
    group.ranks.push_back(static_cast<std::int32_t>(number));
    return absl::OkStatus();
  });
}

absl::Status ReadRemark(dom::element json, Remark& remark) {
  OPTIMUS_RETURN_IF_ERROR(Get(json, "what", remark.what));
  OPTIMUS_RETURN_IF_ERROR(Get(json, "effect", remark.effect));
  OPTIMUS_RETURN_IF_ERROR(Get(json, "rank", remark.rank));
  OPTIMUS_RETURN_IF_ERROR(Get(json, "name", remark.name));
  OPTIMUS_RETURN_IF_ERROR(Get(json, "time_ps", remark.time));
  return Get(json, "count", remark.count);
}

absl::Status ReadStep(dom::element json, StepMark& step) {
  OPTIMUS_RETURN_IF_ERROR(Get(json, "number", step.number));
  OPTIMUS_RETURN_IF_ERROR(Get(json, "rank", step.rank));
  OPTIMUS_RETURN_IF_ERROR(Get(json, "start_ps", step.start));
  return Get(json, "end_ps", step.end);
}

absl::Status ReadTables(dom::element json, Recording& recording) {
  OPTIMUS_RETURN_IF_ERROR(ForEach(json, "ranks", [&recording](dom::element rank) {
    return ReadRank(rank, recording.ranks.emplace_back());
  }));
  OPTIMUS_RETURN_IF_ERROR(ForEach(json, "groups", [&recording](dom::element group) {
    return ReadGroup(group, recording.groups.emplace_back());
  }));
  OPTIMUS_RETURN_IF_ERROR(ForEach(json, "remarks", [&recording](dom::element remark) {
    return ReadRemark(remark, recording.remarks.emplace_back());
  }));
  OPTIMUS_RETURN_IF_ERROR(ForEach(json, "steps", [&recording](dom::element step) {
    return ReadStep(step, recording.steps.emplace_back());
  }));
  return ForEach(json, "names", [&recording](dom::element name) {
    std::string_view text;
    if (name.get_string().get(text) != SUCCESS) return Wrong("names");
    recording.names.emplace_back(text);
    return absl::OkStatus();
  });
}

absl::Status CheckVersion(dom::element json) {
  std::int64_t version = 0;
  OPTIMUS_RETURN_IF_ERROR(Get(json, "format_version", version));
  if (version == kChromeJsonVersion) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"optimus\": format_version ", version, " is not known; hint: known is ",
                   kChromeJsonVersion, ", another version of optimus wrote the file"));
}

}  // namespace

absl::StatusOr<Recording> ParseChromeHeader(const std::string& json) {
  dom::parser parser;
  dom::element header;
  if (parser.parse(json).get(header) != SUCCESS || !header.is_object()) return Wrong("optimus");
  OPTIMUS_RETURN_IF_ERROR(CheckVersion(header));
  Recording recording;
  std::string messages;
  OPTIMUS_RETURN_IF_ERROR(Get(header, "format", recording.format));
  OPTIMUS_RETURN_IF_ERROR(Get(header, "world", recording.world));
  OPTIMUS_RETURN_IF_ERROR(Get(header, "messages", messages));
  if (messages != "eager" && messages != "rendezvous") return Wrong("messages");
  recording.messages = messages == "eager" ? MessageRule::kEager : MessageRule::kRendezvous;
  OPTIMUS_RETURN_IF_ERROR(Get(header, "waits_inside", recording.waits_inside));
  OPTIMUS_RETURN_IF_ERROR(Get(header, "one_clock", recording.one_clock));
  OPTIMUS_RETURN_IF_ERROR(Get(header, "folded", recording.folded));
  OPTIMUS_RETURN_IF_ERROR(ReadTables(header, recording));
  return recording;
}

namespace {

template <class Kind>
bool Find(absl::string_view text, int count, Kind& kind) {
  for (int i = 0; i < count; ++i) {
    const auto candidate = static_cast<Kind>(i);
    if (text != ToString(candidate)) continue;
    kind = candidate;
    return true;
  }
  return false;
}

}  // namespace

bool FromText(absl::string_view text, OpKind& kind) { return Find(text, 4, kind); }
bool FromText(absl::string_view text, CommunicationKind& kind) {
  return Find(text, kCommunicationKindCount, kind);
}
bool FromText(absl::string_view text, DependencyKind& kind) { return Find(text, 4, kind); }

}  // namespace optimus::traces
