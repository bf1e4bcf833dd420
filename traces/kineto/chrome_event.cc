#include "traces/kineto/chrome_event.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "traces/kineto/chrome_header.h"
#include "traces/kineto/json_fields.h"

namespace optimus::traces {
namespace {

using simdjson::error_code;
using simdjson::SUCCESS;

// Reads the fields of an object: `read(key, value)` for each.
template <class F>
error_code ForEachField(JsonValue value, ChromeEvent& event, const F& read) {
  simdjson::ondemand::object object;
  if (const error_code error = value.get_object().get(object); error != SUCCESS) {
    event.wrong = event.wrong || IsOtherType(error);
    return IsOtherType(error) ? SUCCESS : error;
  }
  for (auto field : object) {
    simdjson::ondemand::raw_json_string key;
    OPTIMUS_JSON(field.key().get(key));
    JsonValue item;
    OPTIMUS_JSON(field.value().get(item));
    OPTIMUS_JSON(read(KeyText(key), item));
  }
  return SUCCESS;
}

// An integer that has to be one.
error_code Whole(JsonValue value, ChromeEvent& event, std::int64_t& out) {
  const error_code error = value.get_int64().get(out);
  event.wrong = event.wrong || IsOtherType(error);
  return IsOtherType(error) ? SUCCESS : error;
}

error_code Whole(JsonValue value, ChromeEvent& event, std::int32_t& out) {
  std::int64_t wide = -1;
  OPTIMUS_JSON(Whole(value, event, wide));
  const bool fits = wide >= -1 && wide <= std::numeric_limits<std::int32_t>::max();
  event.wrong = event.wrong || !fits;
  out = fits ? static_cast<std::int32_t>(wide) : -1;
  return SUCCESS;
}

error_code Whole(JsonValue value, ChromeEvent& event, Bytes& out) {
  std::int64_t bytes = 0;
  OPTIMUS_JSON(Whole(value, event, bytes));
  out = Bytes(bytes);
  return SUCCESS;
}

error_code ReadWork(JsonValue value, ChromeEvent& event) {
  return ForEachField(value, event, [&event](absl::string_view key, JsonValue item) {
    if (key == "id") return Whole(item, event, event.work_id);
    if (key == "bytes") return Whole(item, event, event.work.bytes);
    if (key != "flops") return SUCCESS;
    const error_code error = item.get_double().get(event.work.flops);
    event.wrong = event.wrong || IsOtherType(error);
    return IsOtherType(error) ? SUCCESS : error;
  });
}

error_code ReadCommunication(JsonValue value, ChromeEvent& event) {
  return ForEachField(value, event, [&event](absl::string_view key, JsonValue item) {
    Communication& communication = event.communication;
    if (key == "id") return Whole(item, event, event.communication_id);
    if (key == "group") return Whole(item, event, communication.group);
    if (key == "peer") return Whole(item, event, communication.peer);
    if (key == "sequence") return Whole(item, event, communication.sequence);
    if (key == "tag") return Whole(item, event, communication.tag);
    if (key == "bytes") return Whole(item, event, communication.bytes);
    if (key != "kind") return SUCCESS;
    absl::string_view kind;
    OPTIMUS_JSON(ReadText(item, kind));
    event.wrong = event.wrong || !FromText(kind, communication.kind);
    return SUCCESS;
  });
}

// [12, "launch"]
error_code ReadDependency(JsonValue value, ChromeEvent& event) {
  simdjson::ondemand::array pair;
  OPTIMUS_JSON(value.get_array().get(pair));
  std::int64_t op = -1;
  absl::string_view kind;
  int fields = 0;
  for (auto element : pair) {
    JsonValue item;
    OPTIMUS_JSON(element.get(item));
    if (fields == 0) {
      OPTIMUS_JSON(Whole(item, event, op));
    } else if (fields == 1) {
      OPTIMUS_JSON(ReadText(item, kind));
    }
    ++fields;
  }
  Dependency dependency;
  const bool fits = op >= 0 && op <= std::numeric_limits<std::int32_t>::max();
  event.wrong = event.wrong || !fits || fields != 2 || !FromText(kind, dependency.kind);
  dependency.op = fits ? static_cast<std::uint32_t>(op) : 0;
  event.after.push_back(dependency);
  return SUCCESS;
}

error_code ReadAfter(JsonValue value, ChromeEvent& event) {
  simdjson::ondemand::array array;
  error_code error = value.get_array().get(array);
  if (error == SUCCESS) {
    for (auto element : array) {
      JsonValue item;
      OPTIMUS_JSON(element.get(item));
      error = ReadDependency(item, event);
      if (error != SUCCESS) break;
    }
  }
  return error;
}

error_code ReadArgs(JsonValue value, ChromeEvent& event) {
  return ForEachField(value, event, [&event](absl::string_view key, JsonValue item) {
    if (key == "op") return Whole(item, event, event.op);
    if (key == "kind") return ReadText(item, event.kind);
    if (key == "after") return ReadAfter(item, event);
    if (key == "work") return ReadWork(item, event);
    if (key == "communication") return ReadCommunication(item, event);
    if (key == "untimed") event.untimed = true;
    return SUCCESS;
  });
}

error_code ReadField(absl::string_view key, JsonValue value, ChromeEvent& event) {
  if (key == "ph") return ReadText(value, event.phase);
  if (key == "name") return ReadText(value, event.name);
  if (key == "pid") return ReadInteger(value, event.pid);
  if (key == "tid") return ReadInteger(value, event.tid);
  if (key == "ts") return ReadNumberText(value, event.start);
  if (key == "dur") return ReadNumberText(value, event.duration);
  if (key == "args") return ReadArgs(value, event);
  return SUCCESS;
}

}  // namespace

simdjson::error_code ReadChromeEvent(simdjson::ondemand::object object, ChromeEvent& event) {
  std::vector<Dependency> after = std::move(event.after);
  after.clear();
  event = ChromeEvent();
  event.after = std::move(after);
  for (auto field : object) {
    simdjson::ondemand::raw_json_string key;
    OPTIMUS_JSON(field.key().get(key));
    JsonValue value;
    OPTIMUS_JSON(field.value().get(value));
    OPTIMUS_JSON(ReadField(KeyText(key), value, event));
    if (!event.phase.empty() && event.phase != "X") return SUCCESS;
  }
  return SUCCESS;
}

}  // namespace optimus::traces
