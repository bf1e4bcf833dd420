#include "executor/host/step_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::executor {
namespace {

// Without a Schedule there are only numbers.
std::string StampNumbers(const Stamp& stamp) {
  if (stamp == Stamp{}) {
    return "nothing";
  }
  return absl::StrCat("rank ", stamp.rank, " operation ", stamp.operation, " step ", stamp.step,
                      " module ", stamp.module, " layer ", stamp.layer, " micro-batch ",
                      stamp.micro_batch, " phase ", stamp.phase);
}

}  // namespace

void StepState::Fail(absl::Status error) {
  {
    const std::lock_guard lock(error_mutex_);
    if (error_.ok()) {
      error_ = std::move(error);
    }
  }
  given_up.store(true, std::memory_order_seq_cst);
  WakeAll();
}

absl::Status StepState::error() {
  const std::lock_guard lock(error_mutex_);
  return error_;
}

void StepState::Leave() {
  if (running.fetch_sub(1, std::memory_order_seq_cst) == 1) {
    caller.Wake();
  }
}

void StepState::WakeAll() {
  caller.Wake();
  compute.Wake();
  communication.Wake();
}

void StepState::BeginStream(StreamCursor& cursor, std::int64_t now_ns) {
  if (cursor.ready_ns != 0) {
    return;
  }
  std::int64_t start = 0;
  cursor.ready_ns = start_ns.compare_exchange_strong(start, now_ns) ? now_ns : start;
}

void StepState::Record(StreamCursor& cursor, Event event, Waiter other) {
  const std::int64_t now_ns = NowNs();
  BeginStream(cursor, now_ns);
  if (events.Record(event, cursor.ready_ns, now_ns, other)) {
    (other == kComputeThread ? compute : communication).Wake();
  }
}

absl::StatusOr<bool> StepState::RunSimple(StreamCursor& cursor, Waiter other) {
  const Command command = cursor.command();
  switch (command.kind) {
    case CommandKind::kRecord:
      Record(cursor, command.index, other);
      return true;
    case CommandKind::kWriteStamp:
      stamps.Write(command.index, cursor.queue->stamps[cursor.next_stamp++]);
      return true;
    case CommandKind::kCheckStamp:
      OPTIMUS_RETURN_IF_ERROR(CompareStamp(command.index, cursor.queue->stamps[cursor.next_stamp++],
                                           cursor.queue->texts[cursor.next_text++]));
      return true;
    default:
      return false;
  }
}

absl::Status StepState::CompareStamp(std::uint32_t slot, const Stamp& expected,
                                     const StreamQueue::StampText* text) const {
  const Stamp found = stamps.Read(slot);
  if (found == expected) {
    return absl::OkStatus();
  }
  const auto describe = [text](const Stamp& stamp) {
    return text != nullptr ? (*text)(stamp) : StampNumbers(stamp);
  };
  return absl::DataLossError(absl::StrCat(
      "wrong data: expected the output of ", describe(expected), "; found ", describe(found),
      "; hint: a dependency is missing, or the order is not the schedule's"));
}

}  // namespace optimus::executor
