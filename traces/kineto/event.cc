#include "traces/kineto/event.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "traces/kineto/event_stream.h"
#include "traces/kineto/json_fields.h"

namespace optimus::traces {
namespace {

using simdjson::error_code;
using simdjson::SUCCESS;

struct ArgField {
  absl::string_view key;
  std::int64_t EventArgs::*integer = nullptr;
  absl::string_view EventArgs::*text = nullptr;
};

constexpr std::array<ArgField, 22> kArgFields = {{
    {"correlation", &EventArgs::correlation, nullptr},
    {"stream", &EventArgs::stream, nullptr},
    {"device", &EventArgs::device, nullptr},
    {"bytes", &EventArgs::bytes, nullptr},
    {"size", &EventArgs::bytes, nullptr},  // mtia_ccp_events
    {"cuda_sync_kind", nullptr, &EventArgs::sync_kind},
    {"wait_on_stream", &EventArgs::wait_stream, nullptr},
    {"wait_on_cuda_event_record_corr_id", &EventArgs::record_correlation, nullptr},
    {"Collective name", nullptr, &EventArgs::collective},
    {"dtype", nullptr, &EventArgs::dtype},
    {"Process Group Name", nullptr, &EventArgs::group},
    {"Process Group Description", nullptr, &EventArgs::group_description},
    {"Process Group Ranks", nullptr, &EventArgs::group_ranks},
    {"In msg nelems", &EventArgs::elements_in, nullptr},
    {"Out msg nelems", &EventArgs::elements_out, nullptr},
    {"Group size", &EventArgs::group_size, nullptr},
    {"Src Rank", &EventArgs::source, nullptr},
    {"Dst Rank", &EventArgs::destination, nullptr},
    {"Seq", &EventArgs::sequence, nullptr},
    // Older files.
    {"In nelems", &EventArgs::elements_in, nullptr},
    {"Out nelems", &EventArgs::elements_out, nullptr},
    {"Collective Name", nullptr, &EventArgs::collective},
}};

const ArgField* FindArgField(absl::string_view key) {
  for (const ArgField& field : kArgFields) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

// A list of ranks comes as text or, from others, as an array: its text then.
error_code ReadTextOrArray(JsonValue value, absl::string_view& out) {
  simdjson::ondemand::json_type type{};
  OPTIMUS_JSON(value.type().get(type));
  if (type != simdjson::ondemand::json_type::array) return ReadText(value, out);
  simdjson::ondemand::array array;
  OPTIMUS_JSON(value.get_array().get(array));
  std::string_view raw;
  OPTIMUS_JSON(array.raw_json().get(raw));
  out = absl::string_view(raw.data(), raw.size());
  return SUCCESS;
}

error_code ReadArgs(JsonValue value, EventArgs& args) {
  simdjson::ondemand::object object;
  if (const error_code error = value.get_object().get(object); error != SUCCESS) {
    return IsOtherType(error) ? SUCCESS : error;
  }
  for (auto field : object) {
    simdjson::ondemand::raw_json_string key;
    OPTIMUS_JSON(field.key().get(key));
    const ArgField* known = FindArgField(KeyText(key));
    if (known == nullptr) continue;
    JsonValue item;
    OPTIMUS_JSON(field.value().get(item));
    if (known->integer != nullptr) {
      OPTIMUS_JSON(ReadInteger(item, args.*known->integer));
    } else {
      OPTIMUS_JSON(ReadTextOrArray(item, args.*known->text));
    }
  }
  return SUCCESS;
}

// False: not one of those that are wanted, the rest of it need not be read.
error_code ReadField(absl::string_view key, JsonValue value, KinetoEvent& event, bool& wanted,
                     absl::FunctionRef<bool(EventClass)> wants) {
  if (key == "ph") {
    absl::string_view phase;
    OPTIMUS_JSON(ReadText(value, phase));
    wanted = phase == "X";
  } else if (key == "cat") {
    absl::string_view category;
    OPTIMUS_JSON(ReadText(value, category));
    event.event_class = ClassOf(category);
    wanted = wants(event.event_class);
  } else if (key == "name") {
    return ReadText(value, event.name);
  } else if (key == "ts") {
    return ReadNumberText(value, event.start);
  } else if (key == "dur") {
    return ReadNumberText(value, event.duration);
  } else if (key == "pid") {
    return ReadInteger(value, event.pid);
  } else if (key == "tid") {
    return ReadInteger(value, event.tid);
  } else if (key == "args") {
    return ReadArgs(value, event.args);
  }
  return SUCCESS;
}

error_code ReadEvent(simdjson::ondemand::object object, KinetoEvent& event, bool& wanted,
                     absl::FunctionRef<bool(EventClass)> wants) {
  bool has_phase = false;
  for (auto field : object) {
    simdjson::ondemand::raw_json_string raw_key;
    OPTIMUS_JSON(field.key().get(raw_key));
    const absl::string_view key = KeyText(raw_key);
    JsonValue value;
    OPTIMUS_JSON(field.value().get(value));
    wanted = true;
    OPTIMUS_JSON(ReadField(key, value, event, wanted, wants));
    has_phase = has_phase || key == "ph";
    if (!wanted) return SUCCESS;
  }
  wanted = has_phase && event.event_class != EventClass::kUnknown;
  return SUCCESS;
}

}  // namespace

bool IsOnDevice(EventClass event_class) {
  return event_class == EventClass::kKernel || event_class == EventClass::kCopy ||
         event_class == EventClass::kDevice;
}

EventClass ClassOf(absl::string_view category) {
  static constexpr std::array<std::pair<absl::string_view, EventClass>, 11> kKnown = {{
      {"kernel", EventClass::kKernel},
      {"Kernel", EventClass::kKernel},
      {"gpu_memcpy", EventClass::kCopy},
      {"gpu_memset", EventClass::kCopy},
      {"Memcpy", EventClass::kCopy},
      {"Memset", EventClass::kCopy},
      {"mtia_ccp_events", EventClass::kDevice},
      {"hpu_op", EventClass::kDevice},
      {"Runtime", EventClass::kCall},
      {"cuda_sync", EventClass::kSync},
      {"user_annotation", EventClass::kAnnotation},
  }};
  for (const auto& [name, event_class] : kKnown) {
    if (category == name) return event_class;
  }
  if (absl::EndsWith(category, "_runtime") || absl::EndsWith(category, "_driver")) {
    return EventClass::kCall;
  }
  return EventClass::kIgnored;
}

namespace {

std::int64_t OffsetIn(absl::string_view batch, std::int64_t offset, const char* place) {
  const std::ptrdiff_t at = place - batch.data();
  const bool inside = at >= 0 && at <= static_cast<std::ptrdiff_t>(batch.size());
  return offset + (inside ? at : 0);
}

}  // namespace

absl::Status ForEachEvent(
    simdjson::ondemand::parser& parser, absl::string_view batch, std::int64_t offset,
    absl::FunctionRef<error_code(simdjson::ondemand::object, absl::Status&)> read) {
  simdjson::ondemand::document document;
  simdjson::ondemand::array array;
  error_code error =
      parser.iterate(batch.data(), batch.size(), batch.size() + kBatchPadding).get(document);
  if (error == SUCCESS) error = document.get_array().get(array);
  if (error != SUCCESS) return JsonError(batch, offset, error);
  for (auto element : array) {
    const char* place = batch.data();
    if (element.error() == SUCCESS) error = document.current_location().get(place);
    simdjson::ondemand::object object;
    if (error == SUCCESS) error = element.get_object().get(object);
    absl::Status status;
    if (error == SUCCESS) error = read(object, status);
    if (error != SUCCESS) return JsonError(batch, offset, error);
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("byte ", OffsetIn(batch, offset, place), ": ",
                                                      status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status EventParser::Parse(absl::string_view batch, std::int64_t offset,
                                absl::FunctionRef<bool(EventClass)> wants,
                                absl::FunctionRef<absl::Status(const KinetoEvent&)> take) {
  return ForEachEvent(parser_, batch, offset,
                      [&](simdjson::ondemand::object object, absl::Status& status) {
                        KinetoEvent event;
                        bool wanted = false;
                        const error_code error = ReadEvent(object, event, wanted, wants);
                        if (error == SUCCESS && wanted) status = take(event);
                        return error;
                      });
}

}  // namespace optimus::traces
