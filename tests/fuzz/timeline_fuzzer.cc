// Schedules and timelines from anywhere, as recordings, and these as Perfetto traces and CSV: what
// is refused has an error, what is taken passes CheckRecording.
//
// An input: a byte of options, the length of the schedule (4 bytes, lowest first), the schedule and
// the timeline as binary protos. Options: 1 every rank of the world; 2 times made up from the bytes
// of the timeline, so that any valid schedule has some; 4 other times and clocks put into the
// recording, so that operations overlap.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "schedule/ir/serialize.h"
#include "schedule/ir/validate.h"
#include "traces/from_timeline.h"
#include "traces/perfetto.h"
#include "traces/perfetto_recording.h"
#include "traces/spans_csv.h"

namespace optimus {
namespace {

constexpr std::size_t kHead = 5;
constexpr std::int64_t kMostOperations = 20'000;

// The bytes over and over again; zeros where there are none.
class ByteSequence {
 public:
  explicit ByteSequence(absl::string_view bytes) : bytes_(bytes) {}
  std::int64_t Next() {
    if (bytes_.empty()) return 0;
    return static_cast<std::uint8_t>(bytes_[at_++ % bytes_.size()]);
  }
  // A few bits at any place of the word.
  std::int64_t NextAnywhere() { return Next() << (Next() % 55); }

 private:
  absl::string_view bytes_;
  std::size_t at_ = 0;
};

// Each program's first rank runs its operations one after another.
ir::Timeline MadeUp(const ir::Schedule& schedule, ByteSequence& bytes) {
  ir::Timeline timeline;
  for (const ir::Program& program : schedule.programs) {
    const std::int32_t rank = ir::FirstRankOf(schedule, program);
    Picoseconds now;
    for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
      const Picoseconds end = now + Picoseconds(bytes.Next());
      timeline.spans.push_back({rank, id, now, end});
      now = end;
    }
    timeline.step = std::max(timeline.step, now);
    timeline.entities.push_back(
        {rank, program.stage, static_cast<std::int32_t>(bytes.Next() % 16), {}, program.lane});
  }
  return timeline;
}

void ChangeTimes(traces::Recording& recording, ByteSequence& bytes) {
  for (traces::RecordedRank& rank : recording.ranks) {
    rank.clock_origin_ns = bytes.NextAnywhere() - bytes.NextAnywhere();
    for (traces::RecordedOp& op : rank.ops) {
      if (bytes.Next() == 0) {
        op.start = op.end = traces::kUntimed;
        continue;
      }
      op.start = Picoseconds(bytes.NextAnywhere() >> 1);
      op.end = op.start + Picoseconds(bytes.NextAnywhere() >> 1);
    }
    for (traces::Lane& lane : rank.lanes) {
      if (bytes.Next() % 2 == 0) lane.kind = traces::LaneKind::kHostThread;
    }
  }
}

void Try(std::uint8_t options, absl::string_view schedule_bytes, absl::string_view timeline_bytes) {
  ir::proto::Schedule schedule_proto;
  ir::proto::Timeline timeline_proto;
  if (!schedule_proto.ParseFromString(std::string(schedule_bytes))) return;
  const auto schedule = ir::FromProto(schedule_proto);
  if (!schedule.ok() || !ir::Validate(*schedule).ok()) return;
  ByteSequence bytes(timeline_bytes);
  ir::Timeline timeline;
  if ((options & 2) != 0) {
    timeline = MadeUp(*schedule, bytes);
  } else {
    if (!timeline_proto.ParseFromString(std::string(timeline_bytes))) return;
    auto read = ir::FromProto(timeline_proto);
    if (!read.ok()) return;
    timeline = *std::move(read);
  }
  auto recording = traces::ToRecording(
      *schedule, timeline, {.all_ranks = (options & 1) != 0, .most_operations = kMostOperations});
  if (!recording.ok()) return;
  if ((options & 4) != 0) ChangeTimes(*recording, bytes);
  if (!traces::CheckRecording(*recording).ok()) std::abort();
  (void)traces::ToPerfetto(*recording);
  (void)traces::WriteCsv(*recording);
}

}  // namespace
}  // namespace optimus

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < optimus::kHead) return 0;
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  std::size_t length = 0;
  for (std::size_t i = optimus::kHead - 1; i > 0; --i) length = length << 8 | data[i];
  const absl::string_view protos = input.substr(optimus::kHead);
  if (length > protos.size()) return 0;
  optimus::Try(data[0], protos.substr(0, length), protos.substr(length));
  return 0;
}
