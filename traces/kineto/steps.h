#pragma once
// The first pass over a trace: its header, its steps, and which of them is read.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "traces/kineto/event.h"
#include "traces/kineto/event_stream.h"
#include "traces/kineto/file_time.h"
#include "traces/kineto/kineto.h"
#include "traces/kineto/trace_header.h"

namespace optimus::traces {

// "ProfilerStep#551".
struct FileStep {
  std::int64_t number = 0;
  FileTime start, end;
};

// It is also here that every event has to be JSON: the second pass skips what is of no use to it.
class StepFinder final : public EventVisitor {
 public:
  bool WantsHeader(absl::string_view key) override { return IsHeaderKey(key); }
  absl::Status Header(absl::string_view key, const std::string& json) override {
    return ReadHeaderValue(key, json, header_);
  }
  absl::Status Batch(absl::string_view json, std::int64_t offset) override;

  const TraceHeader& header() const { return header_; }
  // By start, one of each number. Call after the pass.
  std::vector<FileStep> Steps() const;

 private:
  absl::Status Take(const KinetoEvent& event);
  EventParser parser_;
  simdjson::dom::parser validator_;
  TraceHeader header_;
  std::vector<FileStep> steps_;
};

struct ChosenStep {
  std::optional<FileStep> step;  // nullopt: the whole file
  bool last_was_cut = false;     // the last step of the file is a stub and was passed over
};
// `asked`, or the last that lies whole in the file. NOT_FOUND where it is not one of `steps`.
absl::StatusOr<ChosenStep> ChooseStep(const std::vector<FileStep>& steps,
                                      std::optional<std::int64_t> asked);

}  // namespace optimus::traces
