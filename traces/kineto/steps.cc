#include "traces/kineto/steps.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace optimus::traces {
namespace {

constexpr absl::string_view kStepName = "ProfilerStep#";
constexpr std::size_t kStepsNamed = 20;
// The profiler closes the step that is open when it stops: an annotation of microseconds.
constexpr std::int64_t kStubFraction = 20;

}  // namespace

absl::Status StepFinder::Batch(absl::string_view json, std::int64_t offset) {
  static_assert(kBatchPadding > simdjson::SIMDJSON_PADDING);
  const simdjson::error_code error =
      validator_.parse(json.data(), json.size(), /*realloc_if_needed=*/false).error();
  if (error != simdjson::SUCCESS) return JsonError(json, offset, error);
  if (json.find(kStepName) == absl::string_view::npos) return absl::OkStatus();
  return parser_.Parse(
      json, offset, [](EventClass event_class) { return event_class == EventClass::kAnnotation; },
      [this](const KinetoEvent& event) { return Take(event); });
}

absl::Status StepFinder::Take(const KinetoEvent& event) {
  absl::string_view rest = event.name;
  FileStep step;
  if (!absl::ConsumePrefix(&rest, kStepName) || !absl::SimpleAtoi(rest, &step.number)) {
    return absl::OkStatus();
  }
  const std::optional<FileTime> start = ParseMicroseconds(event.start);
  const std::optional<FileTime> duration = ParseMicroseconds(event.duration);
  const std::optional<Picoseconds> length =
      duration.has_value() ? Difference(*duration, FileTime{}) : std::nullopt;
  if (!start.has_value() || !length.has_value() || *length < Picoseconds(0)) {
    return absl::InvalidArgumentError(absl::StrCat("step ", step.number, ": ts or dur is no time"));
  }
  const std::optional<FileTime> end = Sum(*start, *length);
  if (!end.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("step ", step.number, ": dur is too long"));
  }
  step.start = *start;
  step.end = *end;
  steps_.push_back(step);
  return absl::OkStatus();
}

std::vector<FileStep> StepFinder::Steps() const {
  std::vector<FileStep> steps;
  absl::flat_hash_set<std::int64_t> seen;
  for (const FileStep& step : steps_) {
    if (seen.insert(step.number).second) steps.push_back(step);
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const FileStep& a, const FileStep& b) { return a.start < b.start; });
  return steps;
}

namespace {

bool IsStub(const FileStep& last, const FileStep& before) {
  const std::optional<Picoseconds> length = Difference(last.end, last.start);
  const std::optional<Picoseconds> usual = Difference(before.end, before.start);
  return length.has_value() && usual.has_value() &&
         length->value() < usual->value() / kStubFraction;
}

absl::Status NoSuchStep(const std::vector<FileStep>& steps, std::int64_t asked) {
  if (steps.empty()) {
    return absl::NotFoundError(
        absl::StrCat("step ", asked,
                     ": the file has no steps (annotations ProfilerStep#N); hint: leave the "
                     "step out to read the whole file"));
  }
  std::vector<std::string> known;
  known.reserve(kStepsNamed + 1);
  for (std::size_t i = 0; i < std::min(steps.size(), kStepsNamed); ++i) {
    known.push_back(absl::StrCat(steps[i].number));
  }
  if (steps.size() > kStepsNamed) known.push_back(absl::StrCat("... ", steps.back().number));
  return absl::NotFoundError(absl::StrCat("step ", asked, " is not in the file; hint: it has ",
                                          absl::StrJoin(known, ", ")));
}

}  // namespace

absl::StatusOr<ChosenStep> ChooseStep(const std::vector<FileStep>& steps,
                                      std::optional<std::int64_t> asked) {
  ChosenStep chosen;
  if (asked.has_value()) {
    for (const FileStep& step : steps) {
      if (step.number == *asked) chosen.step = step;
    }
    if (!chosen.step.has_value()) return NoSuchStep(steps, *asked);
    return chosen;
  }
  if (steps.empty()) return chosen;
  chosen.last_was_cut = steps.size() > 1 && IsStub(steps.back(), steps[steps.size() - 2]);
  chosen.step = chosen.last_was_cut ? steps[steps.size() - 2] : steps.back();
  return chosen;
}

}  // namespace optimus::traces
