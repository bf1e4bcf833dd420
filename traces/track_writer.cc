#include "traces/track_writer.h"

#include <array>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace optimus::traces {
namespace {

std::string Own(absl::string_view text) { return {text.data(), text.size()}; }

}  // namespace

void AppendPacket(const perfetto::TracePacket& packet, std::string& trace) {
  using google::protobuf::internal::WireFormatLite;
  using google::protobuf::io::CodedOutputStream;
  std::array<std::uint8_t, 16> head{};
  std::uint8_t* end = WireFormatLite::WriteTagToArray(
      perfetto::Trace::kPacketFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED, head.data());
  end = CodedOutputStream::WriteVarint32ToArray(static_cast<std::uint32_t>(packet.ByteSizeLong()),
                                                end);
  trace.append(head.data(), end);
  packet.AppendPartialToString(&trace);
}

TrackWriter::TrackWriter(std::uint32_t sequence, std::uint64_t track, std::string& trace)
    : sequence_(sequence), trace_(trace) {
  packet_.set_trusted_packet_sequence_id(sequence_);
  packet_.set_sequence_flags(perfetto::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
  packet_.mutable_trace_packet_defaults()->mutable_track_event_defaults()->set_track_uuid(track);
  AppendPacket(packet_, trace_);
}

template <class Add>
std::uint64_t TrackWriter::Intern(Index& index, absl::string_view text, Add add) {
  const auto found = index.find(text);
  if (found != index.end()) return found->second;
  const std::uint64_t id = index.size() + 1;
  index.emplace(Own(text), id);
  auto* entry = add();
  entry->set_iid(id);
  if constexpr (requires { entry->set_name(std::string()); }) {
    entry->set_name(Own(text));
  } else {
    entry->set_str(Own(text));
  }
  return id;
}

void TrackWriter::StartPacket(std::uint64_t ns, std::uint32_t flags) {
  packet_.Clear();
  packet_.set_timestamp(ns);
  packet_.set_trusted_packet_sequence_id(sequence_);
  packet_.set_sequence_flags(flags);
}

void TrackWriter::Begin(std::uint64_t ns, absl::string_view category) {
  StartPacket(ns, perfetto::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
  perfetto::TrackEvent* event = packet_.mutable_track_event();
  event->set_type(perfetto::TrackEvent::TYPE_SLICE_BEGIN);
  event->add_category_iids(Intern(categories_, category, [&] {
    return packet_.mutable_interned_data()->add_event_categories();
  }));
}

void TrackWriter::Name(absl::string_view name, bool intern) {
  if (!intern) {
    packet_.mutable_track_event()->set_name(Own(name));
    return;
  }
  packet_.mutable_track_event()->set_name_iid(
      Intern(names_, name, [&] { return packet_.mutable_interned_data()->add_event_names(); }));
}

perfetto::DebugAnnotation& TrackWriter::NewAnnotation(absl::string_view key) {
  perfetto::DebugAnnotation* annotation = packet_.mutable_track_event()->add_debug_annotations();
  annotation->set_name_iid(Intern(
      keys_, key, [&] { return packet_.mutable_interned_data()->add_debug_annotation_names(); }));
  return *annotation;
}

void TrackWriter::Annotate(absl::string_view key, std::uint64_t value) {
  NewAnnotation(key).set_uint_value(value);
}

void TrackWriter::Annotate(absl::string_view key, double value) {
  NewAnnotation(key).set_double_value(value);
}

void TrackWriter::AnnotateText(absl::string_view key, absl::string_view text) {
  NewAnnotation(key).set_string_value_iid(Intern(texts_, text, [&] {
    return packet_.mutable_interned_data()->add_debug_annotation_string_values();
  }));
}

void TrackWriter::Commit() { AppendPacket(packet_, trace_); }

void TrackWriter::StartFlow(std::uint64_t id) { packet_.mutable_track_event()->add_flow_ids(id); }

void TrackWriter::EndFlow(std::uint64_t id) {
  packet_.mutable_track_event()->add_terminating_flow_ids(id);
}

void TrackWriter::End(std::uint64_t ns, absl::Span<const std::uint64_t> flows) {
  StartPacket(ns, perfetto::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
  packet_.mutable_track_event()->set_type(perfetto::TrackEvent::TYPE_SLICE_END);
  for (const std::uint64_t id : flows) EndFlow(id);
  AppendPacket(packet_, trace_);
}

}  // namespace optimus::traces
