#include "traces/kineto/step_collector.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace optimus::traces {

CallKind CallKindOf(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "cuda") && !absl::ConsumePrefix(&name, "cu")) {
    absl::ConsumePrefix(&name, "hip");
  }
  if (absl::StartsWith(name, "EventRecord")) return CallKind::kEventRecord;
  if (absl::StartsWith(name, "StreamWaitEvent")) return CallKind::kStreamWait;
  if (absl::StartsWith(name, "StreamSynchronize")) return CallKind::kStreamSync;
  if (absl::StartsWith(name, "DeviceSynchronize") || absl::StartsWith(name, "CtxSynchronize")) {
    return CallKind::kDeviceSync;
  }
  if (absl::StartsWith(name, "EventSynchronize")) return CallKind::kEventSync;
  return absl::StrContains(name, "Query") ? CallKind::kQuery : CallKind::kOther;
}

namespace {

bool IsWanted(EventClass event_class) {
  return IsOnDevice(event_class) || event_class == EventClass::kCall ||
         event_class == EventClass::kSync;
}

// "12.500": yes. "12.0": no.
bool HasFraction(absl::string_view number) {
  if (absl::StrContains(number, 'e') || absl::StrContains(number, 'E')) return true;
  const std::size_t point = number.find('.');
  if (point == absl::string_view::npos) return false;
  return number.find_first_not_of('0', point + 1) != absl::string_view::npos;
}

OpKind KindOf(const KinetoEvent& event) {
  switch (event.event_class) {
    case EventClass::kCopy:
      return OpKind::kCopy;
    case EventClass::kDevice:
      return absl::StartsWith(event.name, "dma") ? OpKind::kCopy : OpKind::kCompute;
    default:
      return IsCommunicationKernel(event.name) || !event.args.collective.empty()
                 ? OpKind::kCommunication
                 : OpKind::kCompute;
  }
}

absl::Status BadField(const KinetoEvent& event, absl::string_view field, absl::string_view why) {
  constexpr std::size_t kLongestName = 60;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", field, "\" of \"", event.name.substr(0, kLongestName), "\" ", why));
}

}  // namespace

StepCollector::StepCollector(const std::optional<FileStep>& step,
                             CommunicationReader communications, const KinetoLimits& limits)
    : step_(step), communications_(std::move(communications)), limits_(limits) {
  if (step.has_value()) events_.reference = step->start;
}

absl::Status StepCollector::Batch(absl::string_view json, std::int64_t offset) {
  return parser_.Parse(json, offset, IsWanted,
                       [this](const KinetoEvent& event) { return Take(event); });
}

absl::Status StepCollector::Take(const KinetoEvent& event) {
  const std::size_t kept = events_.calls.size() + events_.ops.size() + events_.syncs.size();
  if (kept >= static_cast<std::size_t>(limits_.most_ops)) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", limits_.most_ops,
                                                   " operations in one step; hint: choose a step"));
  }
  ++order_;
  if (IsOnDevice(event.event_class)) return TakeOp(event);
  if (again_) return absl::OkStatus();
  return event.event_class == EventClass::kCall ? TakeCall(event) : TakeSync(event);
}

absl::StatusOr<StepCollector::Times> StepCollector::TimesOf(const KinetoEvent& event) {
  const std::optional<FileTime> start = ParseMicroseconds(event.start);
  if (!start.has_value()) return BadField(event, "ts", "is no time in microseconds");
  if (!events_.reference.has_value()) events_.reference = start;
  Times times;
  times.inside = !step_.has_value() || (*start >= step_->start && *start < step_->end);
  // A quarter of the range: sums of two of them fit, too.
  constexpr Picoseconds kFar(kLargestRounded);
  const std::optional<Picoseconds> relative = Difference(*start, *events_.reference);
  if (!relative.has_value() || *relative > kFar || *relative < -kFar) {
    if (!step_.has_value()) return BadField(event, "ts", "is more than 26 days from another one");
    times.inside = false;
    times.far = true;
    return times;
  }
  const std::optional<FileTime> duration =
      event.duration.empty() ? FileTime{} : ParseMicroseconds(event.duration);
  const std::optional<Picoseconds> length =
      duration.has_value() ? Difference(*duration, FileTime{}) : std::nullopt;
  if (!length.has_value() || *length < Picoseconds(0) || *length > kFar) {
    return BadField(event, "dur", "is no length of time in microseconds");
  }
  times.start = *relative;
  times.end = *relative + *length;
  return times;
}

void StepCollector::NoteFraction(const KinetoEvent& event) {
  if (events_.fraction_seen) return;
  events_.fraction_seen = HasFraction(event.start) || HasFraction(event.duration);
}

std::int32_t StepCollector::Name(absl::string_view name) {
  const auto found = names_.find(name);
  if (found != names_.end()) return found->second;
  const auto id = static_cast<std::int32_t>(events_.names.size());
  events_.names.emplace_back(name);
  names_.emplace(std::string(name), id);
  return id;
}

absl::Status StepCollector::TakeCall(const KinetoEvent& event) {
  OPTIMUS_ASSIGN_OR_RETURN(const Times times, TimesOf(event));
  const std::int64_t correlation = event.args.correlation;
  if (!times.inside) {
    if (correlation >= 0) calls_outside_.Insert(correlation);
    return absl::OkStatus();
  }
  NoteFraction(event);
  if (correlation >= 0) calls_inside_.Insert(correlation);
  FileCall call;
  call.start = times.start;
  call.end = times.end;
  call.correlation = correlation;
  call.order = order_;
  call.name = Name(event.name);
  call.thread = events_.threads.Of({event.pid, event.tid});
  call.kind = CallKindOf(event.name);
  events_.calls.push_back(call);
  return absl::OkStatus();
}

std::int32_t StepCollector::Stream(const KinetoEvent& event) {
  const std::int64_t device = event.args.device >= 0 ? event.args.device : event.pid;
  const bool foreign = event.event_class == EventClass::kDevice;
  // Other accelerators: a queue a "thread"; their streams are not those of the queues.
  const std::int64_t stream = event.args.stream >= 0 && !foreign ? event.args.stream : event.tid;
  const std::int32_t number = events_.streams.Of({device, stream});
  events_.foreign_stream.resize(events_.streams.keys().size());
  if (foreign) events_.foreign_stream[static_cast<std::size_t>(number)] = true;
  return number;
}

absl::Status StepCollector::TakeOp(const KinetoEvent& event) {
  OPTIMUS_ASSIGN_OR_RETURN(const Times times, TimesOf(event));
  const std::int64_t correlation = event.args.correlation;
  if (times.far || (times.inside && again_)) return absl::OkStatus();
  if (!times.inside && (correlation < 0 || !calls_inside_.Contains(correlation))) {
    if (correlation >= 0) ops_passed_.Insert(correlation);
    return absl::OkStatus();
  }
  NoteFraction(event);
  FileOp op;
  op.start = times.start;
  op.end = times.end;
  op.correlation = correlation;
  op.order = order_;
  op.name = Name(event.name);
  op.kind = KindOf(event);
  op.stream = Stream(event);
  op.outside = !times.inside;
  if (op.kind == OpKind::kCopy) op.bytes = event.args.bytes;
  if (op.kind == OpKind::kCommunication) {
    op.communication = static_cast<std::int32_t>(events_.communications.size());
    events_.communications.push_back(communications_.Read(event.name, event.args));
  }
  events_.ops.push_back(op);
  return absl::OkStatus();
}

absl::Status StepCollector::TakeSync(const KinetoEvent& event) {
  OPTIMUS_ASSIGN_OR_RETURN(const Times times, TimesOf(event));
  if (!times.inside) return absl::OkStatus();
  FileSync sync;
  const absl::string_view kind = event.args.sync_kind;
  if (kind == "Stream Wait Event") {
    sync.kind = SyncKind::kStreamWait;
  } else if (kind == "Event Sync") {
    sync.kind = SyncKind::kEvent;
  } else if (kind == "Stream Sync") {
    sync.kind = SyncKind::kStream;
  } else if (kind == "Context Sync") {
    sync.kind = SyncKind::kContext;
  } else {
    return absl::OkStatus();
  }
  sync.start = times.start;
  sync.correlation = event.args.correlation;
  sync.record_correlation = event.args.record_correlation;
  sync.device = event.args.device >= 0 ? event.args.device : event.pid;
  sync.stream = event.args.stream;
  sync.wait_stream = event.args.wait_stream;
  sync.order = order_;
  events_.syncs.push_back(sync);
  return absl::OkStatus();
}

bool StepCollector::NeedsAnotherPass() const {
  return std::any_of(events_.calls.begin(), events_.calls.end(), [this](const FileCall& call) {
    return call.correlation >= 0 && ops_passed_.Contains(call.correlation);
  });
}

void StepCollector::BeginAgain() {
  again_ = true;
  order_ = 0;
  std::erase_if(events_.ops, [](const FileOp& op) { return op.outside; });
}

StepEvents StepCollector::Finish() && {
  std::erase_if(events_.ops, [this](const FileOp& op) {
    return op.correlation >= 0 && !calls_inside_.Contains(op.correlation) &&
           calls_outside_.Contains(op.correlation);
  });
  return std::move(events_);
}

}  // namespace optimus::traces
