#pragma once
// The second pass over a trace: keeps the calls and the GPU operations of one step.
//
// A call belongs to the step in whose time it begins, a GPU operation to that of the call that
// launched it; without such a call in the file, to that in which it begins itself. Of events
// outside of the step only a bit of their correlation id is kept.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "traces/kineto/communication.h"
#include "traces/kineto/correlation_set.h"
#include "traces/kineto/event.h"
#include "traces/kineto/event_stream.h"
#include "traces/kineto/step_events.h"
#include "traces/kineto/steps.h"

namespace optimus::traces {

class StepCollector final : public EventVisitor {
 public:
  StepCollector(const std::optional<FileStep>& step, CommunicationReader communications,
                const KinetoLimits& limits);
  bool WantsHeader(absl::string_view) override { return false; }
  absl::Status Header(absl::string_view, const std::string&) override { return absl::OkStatus(); }
  absl::Status Batch(absl::string_view json, std::int64_t offset) override;

  // True: an operation outside of the step's time stands in the file before the call in it that
  // launched it. BeginAgain, and one more pass.
  bool NeedsAnotherPass() const;
  void BeginAgain();
  // What was kept, without what turned out to belong to another step.
  StepEvents Finish() &&;

 private:
  // Of one event, on the reference clock.
  struct Times {
    Picoseconds start, end;
    bool inside = true;
    bool far = false;  // more than 26 days from the step: no times
  };

  absl::Status Take(const KinetoEvent& event);
  absl::Status TakeCall(const KinetoEvent& event);
  absl::Status TakeOp(const KinetoEvent& event);
  absl::Status TakeSync(const KinetoEvent& event);
  absl::StatusOr<Times> TimesOf(const KinetoEvent& event);
  void NoteFraction(const KinetoEvent& event);
  std::int32_t Name(absl::string_view name);
  std::int32_t Stream(const KinetoEvent& event);

  std::optional<FileStep> step_;
  CommunicationReader communications_;
  KinetoLimits limits_;
  EventParser parser_;
  StepEvents events_;
  absl::flat_hash_map<std::string, std::int32_t> names_;
  CorrelationSet calls_inside_, calls_outside_, ops_passed_;
  bool again_ = false;
  std::uint32_t order_ = 0;
};

}  // namespace optimus::traces
