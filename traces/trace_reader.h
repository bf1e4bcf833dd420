#pragma once
// Reads a Perfetto trace of ours as a viewer does, for the tests of this folder.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "traces/perfetto_subset.pb.h"

namespace optimus::traces {

struct Slice {
  std::string name, category;
  std::uint64_t start_ns = 0, end_ns = 0;
  std::map<std::string, std::string> arguments;
  std::set<std::uint64_t> flows_from, flows_to;  // arrows that start here, and that end here
  std::size_t depth = 0;                         // slices that it lies within
};

struct Track {
  std::string process, name;
  int order = 0;
  std::vector<Slice> slices;  // in order of end
};

// Interned strings of one packet sequence.
struct Interned {
  std::map<std::uint64_t, std::string> categories, names, keys, texts;
};

// Reads a trace as a viewer does: interned strings by sequence, default tracks, a stack per track.
class TraceReader {
 public:
  explicit TraceReader(const std::string& bytes) {
    EXPECT_TRUE(trace_.ParseFromString(bytes));
    for (const perfetto::TracePacket& packet : trace_.packet()) Read(packet);
    for (const auto& [uuid, open] : open_) EXPECT_EQ(open.size(), 0U) << "track " << uuid;
  }
  const std::map<std::uint64_t, Track>& tracks() const { return tracks_; }
  const Track& Find(const std::string& process, const std::string& name) const {
    for (const auto& [uuid, track] : tracks_) {
      if (track.process == process && track.name == name) return track;
    }
    static const Track none;
    ADD_FAILURE() << "no track " << process << " / " << name;
    return none;
  }

 private:
  void Read(const perfetto::TracePacket& packet) {
    if (packet.has_track_descriptor()) ReadDescriptor(packet.track_descriptor());
    const std::uint32_t sequence = packet.trusted_packet_sequence_id();
    if (packet.has_trace_packet_defaults()) {
      EXPECT_EQ(packet.sequence_flags(), perfetto::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
      defaults_[sequence] = packet.trace_packet_defaults().track_event_defaults().track_uuid();
    }
    ReadInterned(packet.interned_data(), interned_[sequence]);
    if (packet.has_track_event()) ReadEvent(packet);
  }

  void ReadDescriptor(const perfetto::TrackDescriptor& descriptor) {
    if (descriptor.has_process()) {
      processes_[descriptor.process().pid()] = descriptor.process().process_name();
    }
    if (!descriptor.has_thread()) return;
    Track& track = tracks_[descriptor.uuid()];
    EXPECT_TRUE(track.name.empty()) << "described twice";
    EXPECT_EQ(processes_.count(descriptor.thread().pid()), 1U) << "process described before thread";
    EXPECT_TRUE(thread_ids_.insert(descriptor.thread().tid()).second) << "tid used twice";
    track.process = processes_[descriptor.thread().pid()];
    track.name = descriptor.thread().thread_name();
    track.order = descriptor.sibling_order_rank();
  }

  static void ReadInterned(const perfetto::InternedData& data, Interned& interned) {
    auto add = [](auto& map, std::uint64_t id, const std::string& text) {
      EXPECT_GT(id, 0U);
      EXPECT_TRUE(map.emplace(id, text).second) << "id " << id << " interned twice";
    };
    for (const auto& e : data.event_categories()) add(interned.categories, e.iid(), e.name());
    for (const auto& e : data.event_names()) add(interned.names, e.iid(), e.name());
    for (const auto& e : data.debug_annotation_names()) add(interned.keys, e.iid(), e.name());
    for (const auto& e : data.debug_annotation_string_values()) {
      add(interned.texts, e.iid(), e.str());
    }
  }

  void ReadEvent(const perfetto::TracePacket& packet) {
    const std::uint32_t sequence = packet.trusted_packet_sequence_id();
    EXPECT_EQ(packet.sequence_flags(), perfetto::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
    const perfetto::TrackEvent& event = packet.track_event();
    const std::uint64_t uuid = defaults_.at(sequence);
    ASSERT_EQ(tracks_.count(uuid), 1U);
    std::vector<Slice>& open = open_[uuid];
    EXPECT_GE(packet.timestamp(), last_ns_[uuid]) << "time goes back on track " << uuid;
    last_ns_[uuid] = packet.timestamp();
    if (event.type() == perfetto::TrackEvent::TYPE_SLICE_END) {
      ASSERT_FALSE(open.empty()) << "an end without a begin";
      open.back().end_ns = packet.timestamp();
      for (const std::uint64_t id : event.terminating_flow_ids()) open.back().flows_to.insert(id);
      tracks_[uuid].slices.push_back(open.back());
      open.pop_back();
      return;
    }
    ASSERT_EQ(event.type(), perfetto::TrackEvent::TYPE_SLICE_BEGIN);
    Slice slice = ReadBegin(packet, interned_.at(sequence));
    slice.depth = open.size();
    open.push_back(std::move(slice));
  }

  static Slice ReadBegin(const perfetto::TracePacket& packet, const Interned& interned) {
    const perfetto::TrackEvent& event = packet.track_event();
    Slice slice;
    slice.start_ns = packet.timestamp();
    slice.name = event.has_name() ? event.name() : interned.names.at(event.name_iid());
    slice.category = interned.categories.at(event.category_iids(0));
    for (const auto& a : event.debug_annotations()) {
      slice.arguments[interned.keys.at(a.name_iid())] =
          a.has_string_value_iid() ? interned.texts.at(a.string_value_iid())
          : a.has_double_value()   ? std::to_string(a.double_value())
                                   : std::to_string(a.uint_value());
    }
    for (const std::uint64_t id : event.flow_ids()) slice.flows_from.insert(id);
    for (const std::uint64_t id : event.terminating_flow_ids()) slice.flows_to.insert(id);
    return slice;
  }

  perfetto::Trace trace_;
  std::map<int, std::string> processes_;
  std::set<int> thread_ids_;
  std::map<std::uint64_t, Track> tracks_;
  std::map<std::uint32_t, std::uint64_t> defaults_;
  std::map<std::uint32_t, Interned> interned_;
  std::map<std::uint64_t, std::vector<Slice>> open_;
  std::map<std::uint64_t, std::uint64_t> last_ns_;
};

}  // namespace optimus::traces
