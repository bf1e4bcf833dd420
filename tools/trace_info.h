#pragma once
// What `optimus trace info` says of a trace: counted from the Recording, for text and JSON alike.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/units.h"
#include "tools/json_fields.h"
#include "traces/recording/recording.h"

namespace optimus::tools {

// A step of the profiler, over the ranks that have it.
struct StepInfo {
  std::int64_t number = 0;
  std::int64_t ranks = 0;
  Picoseconds shortest, longest;  // of these ranks, each on its own clock
};

struct LaneInfo {
  std::int32_t rank = 0;
  std::string name;
  bool host = false;
  bool in_order = true;
  std::int64_t operations = 0;
  std::int64_t untimed = 0;
  Picoseconds busy;  // time in which at least one operation runs
};

struct GroupInfo {
  std::string name, description, role;
  std::int64_t size = 0;      // 0: not known
  std::int64_t recorded = 0;  // members that are recorded; not known without `members_known`
  bool members_known = false;
  std::int64_t collectives = 0;    // the most that one recorded member takes part in
  std::int64_t without_bytes = 0;  // of these, the size is not said
  Bytes bytes;                     // of these, the sum
};

struct KindInfo {
  traces::CommunicationKind kind = traces::CommunicationKind::kUnknown;
  std::int64_t operations = 0;  // over all recorded ranks
  std::int64_t without_group = 0, without_peer = 0, without_bytes = 0;
  Picoseconds time;  // sum of their lengths
};

struct TraceInfo {
  std::vector<std::string> files;
  std::string format;
  std::int64_t world = 0;             // 0: not known
  std::vector<std::int32_t> ranks;    // recorded
  std::vector<std::int32_t> missing;  // neither recorded nor stood for; the first kMostMissing
  std::int64_t missing_count = 0;     // 0 as well where the world is not known
  std::int64_t stood_for = 0;         // ranks that recorded ones stand for, with them
  bool folded = false, one_clock = false, waits_inside = false, rendezvous = false;
  Picoseconds step;  // longest step that was read, of one rank on its own clock
  std::int64_t operations = 0, untimed = 0, dependencies = 0;
  std::vector<StepInfo> steps;
  std::vector<LaneInfo> lanes;
  std::vector<GroupInfo> groups;
  std::vector<KindInfo> kinds;  // those that are there
  std::vector<traces::Remark> remarks;
  static constexpr std::size_t kMostMissing = 64;
};

TraceInfo InfoOf(const traces::Recording& recording);

std::string TraceInfoText(const TraceInfo& info);
std::string TraceInfoJson(const TraceInfo& info);
absl::Span<const JsonField> TraceInfoJsonFields();

}  // namespace optimus::tools
