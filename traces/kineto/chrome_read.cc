#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "traces/kineto/chrome_clock.h"
#include "traces/kineto/chrome_event.h"
#include "traces/kineto/chrome_header.h"
#include "traces/kineto/chrome_json.h"
#include "traces/kineto/event.h"
#include "traces/kineto/file_time.h"

namespace optimus::traces {
namespace {

using simdjson::SUCCESS;

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

class ChromeReader final : public EventVisitor {
 public:
  ChromeReader(Recording& recording, const KinetoLimits& limits)
      : recording_(recording), limits_(limits) {
    const std::int64_t base = ClockBase(recording);
    offsets_.reserve(recording.ranks.size());
    for (std::size_t i = 0; i < recording.ranks.size(); ++i) {
      const RecordedRank& rank = recording.ranks[i];
      ranks_.try_emplace(rank.rank, i);
      offsets_.push_back(ClockOffset(rank.clock_origin_ns, base));
    }
    for (std::size_t i = 0; i < recording.names.size(); ++i) {
      names_.try_emplace(recording.names[i], static_cast<std::int32_t>(i));
    }
  }

  bool WantsHeader(absl::string_view) override { return false; }
  absl::Status Header(absl::string_view, const std::string&) override { return absl::OkStatus(); }

  absl::Status Batch(absl::string_view json, std::int64_t offset) override {
    return ForEachEvent(parser_, json, offset,
                        [this](simdjson::ondemand::object object, absl::Status& status) {
                          const simdjson::error_code error = ReadChromeEvent(object, event_);
                          if (error == SUCCESS && event_.phase == "X") status = Take();
                          return error;
                        });
  }

 private:
  absl::Status Take() {
    const auto found = ranks_.find(event_.pid);
    if (found == ranks_.end()) return Wrong("\"pid\" is no rank of the header");
    RecordedRank& rank = recording_.ranks[found->second];
    if (event_.wrong) return Wrong("\"args\" of another type than ours");
    if (event_.op != static_cast<std::int64_t>(rank.ops.size())) {
      return Wrong(absl::StrCat("\"op\" is ", event_.op, "; ", rank.ops.size(), " would follow"));
    }
    if (event_.op >= limits_.most_ops) return Wrong("too many operations");
    RecordedOp op;
    if (!FromText(event_.kind, op.kind)) return Wrong("\"kind\" is none of ours");
    if (event_.tid < 0 || event_.tid >= static_cast<std::int64_t>(rank.lanes.size())) {
      return Wrong("\"tid\" is no lane of the header");
    }
    op.lane = static_cast<std::int32_t>(event_.tid);
    op.name = Name(event_.name);
    OPTIMUS_RETURN_IF_ERROR(SetTimes(offsets_[found->second], op));
    OPTIMUS_RETURN_IF_ERROR(SetTables(rank, op));
    op.first_dependency = static_cast<std::uint32_t>(rank.dependencies.size());
    op.dependency_count = static_cast<std::uint32_t>(event_.after.size());
    rank.dependencies.insert(rank.dependencies.end(), event_.after.begin(), event_.after.end());
    rank.ops.push_back(op);
    return absl::OkStatus();
  }

  absl::Status SetTimes(std::int64_t offset_ns, RecordedOp& op) const {
    if (event_.untimed) return absl::OkStatus();
    const auto start = ParseMicroseconds(event_.start);
    const auto length = ParseMicroseconds(event_.duration);
    if (!start.has_value() || !length.has_value()) return Wrong("\"ts\" or \"dur\" is no time");
    const auto begins = Difference(*start, FileTime{offset_ns, 0});
    const auto lasts = Difference(*length, FileTime{});
    std::int64_t end = 0;
    if (!begins.has_value() || !lasts.has_value() || *begins < Picoseconds(0) ||
        *lasts < Picoseconds(0) || __builtin_add_overflow(begins->value(), lasts->value(), &end)) {
      return Wrong("\"ts\" or \"dur\" is out of range");
    }
    op.start = *begins;
    op.end = Picoseconds(end);
    return absl::OkStatus();
  }

  // Entries of a table are numbered as they come; operations may share one.
  template <class T>
  static absl::Status Entry(std::vector<T>& table, std::int64_t id, const T& value,
                            std::int32_t& index) {
    if (id < 0) return absl::OkStatus();
    const auto size = static_cast<std::int64_t>(table.size());
    if (id > size) return Wrong("\"id\" is ahead of its time");
    if (id == size) table.push_back(value);
    if (!(table[static_cast<std::size_t>(id)] == value)) return Wrong("\"id\" stands for another");
    index = static_cast<std::int32_t>(id);
    return absl::OkStatus();
  }

  absl::Status SetTables(RecordedRank& rank, RecordedOp& op) const {
    OPTIMUS_RETURN_IF_ERROR(Entry(rank.works, event_.work_id, event_.work, op.work));
    return Entry(rank.communications, event_.communication_id, event_.communication,
                 op.communication);
  }

  std::int32_t Name(absl::string_view name) {
    const auto found = names_.find(name);
    if (found != names_.end()) return found->second;
    const auto id = static_cast<std::int32_t>(recording_.names.size());
    recording_.names.emplace_back(name);
    names_.emplace(std::string(name), id);
    return id;
  }

  Recording& recording_;
  KinetoLimits limits_;
  simdjson::ondemand::parser parser_;
  ChromeEvent event_;
  absl::flat_hash_map<std::int64_t, std::size_t> ranks_;
  absl::flat_hash_map<std::string, std::int32_t> names_;
  std::vector<std::int64_t> offsets_;
};

}  // namespace

absl::StatusOr<Recording> ReadChromeJson(ByteSource& source, const std::string& name,
                                         const TraceHeader& header, const KinetoLimits& limits) {
  OPTIMUS_ASSIGN_OR_RETURN(Recording recording, ParseChromeHeader(header.ours));
  for (RecordedRank& rank : recording.ranks) rank.source = name;
  ChromeReader reader(recording, limits);
  OPTIMUS_RETURN_IF_ERROR(EventStream(source, limits).Read(reader, /*whole=*/false));
  return recording;
}

}  // namespace optimus::traces
