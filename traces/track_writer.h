#pragma once
// Writes the slices of one Perfetto track as packets of one sequence: strings that repeat are
// written once (interned, an index per sequence), and the track is the sequence's default.

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "traces/perfetto_subset.pb.h"

namespace optimus::traces {

// Appends `packet` to a serialized Trace.
void AppendPacket(const perfetto::TracePacket& packet, std::string& trace);

class TrackWriter {
 public:
  // `sequence` is unique in the trace and not 0. `trace` outlives the writer.
  TrackWriter(std::uint32_t sequence, std::uint64_t track, std::string& trace);

  // One slice: Begin, any annotations and flows, Commit, End. Slices of a track follow one another
  // in time, or lie within one another: then the inner one is ended first.
  void Begin(std::uint64_t ns, absl::string_view category);
  void Name(absl::string_view name, bool intern);
  void Annotate(absl::string_view key, std::uint64_t value);
  void Annotate(absl::string_view key, double value);
  void AnnotateText(absl::string_view key, absl::string_view text);
  // An arrow starts, or ends, here. Ids are those of the whole trace.
  void StartFlow(std::uint64_t id);
  void EndFlow(std::uint64_t id);
  void Commit();
  // `flows`: arrows that end where the slice does.
  void End(std::uint64_t ns, absl::Span<const std::uint64_t> flows = {});

 private:
  // Text to interning id, from 1.
  using Index = absl::flat_hash_map<std::string, std::uint64_t>;
  // The id of `text`; a new one goes to the packet at hand by `add(id)`.
  template <class Add>
  static std::uint64_t Intern(Index& index, absl::string_view text, Add add);
  perfetto::DebugAnnotation& NewAnnotation(absl::string_view key);
  void StartPacket(std::uint64_t ns, std::uint32_t flags);

  std::uint32_t sequence_;
  std::string& trace_;
  perfetto::TracePacket packet_;  // reused: its memory is kept from packet to packet
  Index categories_, names_, keys_, texts_;
};

}  // namespace optimus::traces
