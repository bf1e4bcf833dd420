// From a sweep to its points.

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "hw_profiles/changed_link.h"
#include "models/zoo.h"
#include "schedule/step/check.h"
#include "schedule/step/step.h"
#include "tools/sweep/spec/sweep.h"

namespace optimus::sweep {
namespace {

constexpr double kMostStragglers = 100'000;

// What a derived value is in a column or field of `type`: a REAL without a fraction is a whole
// number as well. Absent: it is none.
std::optional<SqlValue> Converted(const SqlValue& value, const std::string& type) {
  if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
  const auto* integer = std::get_if<std::int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  if (type == "TEXT") return ToText(value);
  if (type == "REAL") {
    if (integer != nullptr) return static_cast<double>(*integer);
    return real == nullptr ? std::nullopt : std::optional<SqlValue>(*real);
  }
  if (integer != nullptr) return *integer;
  constexpr double kLargestWhole = 9007199254740992.0;  // 2^53
  if (real == nullptr || std::floor(*real) != *real || std::fabs(*real) > kLargestWhole) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*real);
}

// The type of a column that also holds `value`.
std::string Widened(const std::string& type, const SqlValue& value) {
  if (std::holds_alternative<std::monostate>(value) || type == "TEXT") return type;
  if (std::holds_alternative<std::string>(value)) return "TEXT";
  if (std::holds_alternative<double>(value)) return "REAL";
  return type.empty() ? "INTEGER" : type;
}

// Content that an experiment names instead of holding it. A file that is missing is found by
// others.
std::string NamedContent(const step::Experiment& experiment) {
  std::string content;
  const auto add_model = [&](const std::string& name) {
    if (name.empty()) return;
    const absl::StatusOr<models::ModelConfig> model = models::LoadModel(name);
    if (model.ok()) absl::StrAppend(&content, SerializeDeterministically(*model), "\n");
  };
  add_model(experiment.llm());
  for (const step::Encoder& encoder : experiment.encoders()) add_model(encoder.model());
  if (!experiment.plan().schedule_file().empty()) {
    const absl::StatusOr<std::string> file = ReadFile(experiment.plan().schedule_file());
    if (file.ok()) absl::StrAppend(&content, *file);
  }
  return content;
}

std::string HashOf(const Point& point) {
  step::Experiment experiment = point.experiment;
  experiment.clear_name();
  experiment.clear_description();
  experiment.clear_assumptions();
  // What they name counts, not where it lies.
  experiment.clear_llm();
  for (step::Encoder& encoder : *experiment.mutable_encoders()) encoder.clear_model();
  experiment.mutable_hardware()->clear_profile();
  experiment.mutable_plan()->clear_schedule_file();
  return ContentHash(absl::StrCat(
      SerializeDeterministically(experiment), "\n", SerializeDeterministically(point.profile), "\n",
      NamedContent(point.experiment), "\n", std::string(point.problem.message())));
}

}  // namespace

absl::Status LoadedSweep::Apply(const FieldValue& setting, Draft& draft) {
  if (setting.field.root() == FieldPath::Root::kProfile) {
    draft.profile_changes.push_back(setting);
    return absl::OkStatus();
  }
  return setting.field.Set(setting.value, draft.point.experiment);
}

absl::StatusOr<SqlValue> LoadedSweep::Compute(Formula& formula, const Draft& draft) {
  std::vector<SqlValue> values;
  values.reserve(formula.sources.size());
  for (const NameSource& source : formula.sources) {
    if (source.column) {
      values.push_back(draft.point.columns[*source.column]);
    } else {
      values.emplace_back(source.value->value(draft.point.experiment));
    }
  }
  absl::StatusOr<SqlValue> value = formula.expression.Value(values);
  if (value.ok()) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", formula.expression.text(), "\": ", std::string(value.status().message())));
}

absl::Status LoadedSweep::Derive(DerivedValue& derived, const Column& column, Draft& draft) {
  OPTIMUS_ASSIGN_OR_RETURN(SqlValue value, Compute(derived.formula, draft));
  if (!derived.field) {
    // Until all points are known the column has no type.
    const std::optional<SqlValue> converted =
        column.type.empty() ? value : Converted(value, column.type);
    draft.point.columns.push_back(converted.value_or(SqlValue()));
    return absl::OkStatus();
  }
  const std::optional<SqlValue> converted = Converted(value, column.type);
  draft.point.columns.push_back(converted.value_or(SqlValue()));
  absl::Status status =
      converted
          ? derived.field->CheckValue(ToText(*converted))
          : absl::InvalidArgumentError(absl::StrCat(
                derived.field->text(), ": ", derived.formula.expression.text(), " is ",
                std::holds_alternative<std::monostate>(value) ? "nothing (NULL)" : ToText(value)));
  if (status.ok()) status = Apply({*derived.field, ToText(*converted)}, draft);
  if (!status.ok() && draft.point.problem.ok()) draft.point.problem = status;
  return absl::OkStatus();
}

absl::StatusOr<LoadedSweep::Draft> LoadedSweep::MakeDraft(std::int64_t combination) {
  Draft draft;
  draft.point.experiment = base_;
  for (const FieldValue& setting : settings_) OPTIMUS_RETURN_IF_ERROR(Apply(setting, draft));
  std::int64_t below = combinations_;
  for (const Choices& choices : choices_) {
    const auto count = static_cast<std::int64_t>(choices.size());
    below /= count;
    const Choice& choice = choices[static_cast<std::size_t>(combination / below % count)];
    draft.point.columns.insert(draft.point.columns.end(), choice.columns.begin(),
                               choice.columns.end());
    for (const FieldValue& setting : choice.settings) {
      OPTIMUS_RETURN_IF_ERROR(Apply(setting, draft));
    }
    if (choice.seed) draft.seed = choice.seed;
  }
  const std::size_t axes = draft.point.columns.size();
  for (std::size_t i = 0; i < derived_.size(); ++i) {
    OPTIMUS_RETURN_IF_ERROR(Derive(derived_[i], columns_[axes + i], draft));
  }
  return draft;
}

absl::StatusOr<std::optional<std::size_t>> LoadedSweep::ExcludedBy(const Draft& draft) {
  for (std::size_t i = 0; i < conditions_.size(); ++i) {
    OPTIMUS_ASSIGN_OR_RETURN(const SqlValue value, Compute(conditions_[i], draft));
    const absl::StatusOr<bool> is_true = IsTrue(value);
    if (!is_true.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("conditions: \"",
                                                     conditions_[i].expression.text(), "\" ",
                                                     std::string(is_true.status().message())));
    }
    if (!*is_true) return i;
  }
  return std::nullopt;
}

absl::Status LoadedSweep::CountPoints() {
  const std::size_t axes = columns_.size() - derived_.size();
  std::vector<std::string> types(derived_.size());
  for (std::int64_t combination = 0; combination < combinations_; ++combination) {
    OPTIMUS_ASSIGN_OR_RETURN(const Draft draft, MakeDraft(combination));
    OPTIMUS_ASSIGN_OR_RETURN(const std::optional<std::size_t> condition, ExcludedBy(draft));
    if (condition) {
      ++excluded_[*condition];
      continue;
    }
    kept_.push_back(combination);
    for (std::size_t i = 0; i < types.size(); ++i) {
      types[i] = Widened(types[i], draft.point.columns[axes + i]);
    }
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    Column& column = columns_[axes + i];
    if (column.type.empty()) column.type = types[i].empty() ? "TEXT" : types[i];
  }
  if (!kept_.empty()) return absl::OkStatus();
  std::vector<std::string> reasons;
  for (std::size_t i = 0; i < conditions_.size(); ++i) {
    reasons.push_back(
        absl::StrCat("\"", conditions_[i].expression.text(), "\" leaves out ", excluded_[i]));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("conditions: none of ", combinations_,
                   " combinations remains: ", absl::StrJoin(reasons, ", ")));
}

absl::StatusOr<hw::HardwareProfile> LoadedSweep::ProfileNamed(const std::string& name) {
  const auto found = profiles_.find(name);
  if (found != profiles_.end()) return found->second;
  step::Experiment naming;
  naming.mutable_hardware()->set_profile(name);
  OPTIMUS_ASSIGN_OR_RETURN(hw::HardwareProfile profile, step::LoadExperimentProfile(naming));
  return profiles_.emplace(name, std::move(profile)).first->second;
}

absl::Status LoadedSweep::ChangeProfile(Draft& draft) {
  hw::HardwareProfile& profile = draft.point.profile;
  OPTIMUS_ASSIGN_OR_RETURN(profile, ProfileNamed(draft.point.experiment.hardware().profile()));
  for (const FieldValue& change : draft.profile_changes) {
    // Times that were measured over a link say nothing of another bandwidth.
    if (change.field.text() == "profile.nic.bandwidth_gb_per_s") {
      profile = hw::WithoutMeasuredTransfers(std::move(profile), LinkScope::kNic);
    } else if (change.field.text() == "profile.nvlink.bandwidth_gb_per_s") {
      profile = hw::WithoutMeasuredTransfers(std::move(profile), LinkScope::kNvlink);
    }
    OPTIMUS_RETURN_IF_ERROR(change.field.Set(change.value, profile));
  }
  if (draft.profile_changes.empty()) return absl::OkStatus();
  absl::Status status = hw::ValidateProfile(profile);
  if (status.ok()) return status;
  return {status.code(), absl::StrCat("profile.", std::string(status.message()))};
}

absl::Status LoadedSweep::AddStragglers(Draft& draft) const {
  step::Experiment& experiment = draft.point.experiment;
  if (!draft.seed || experiment.hardware().gpus() <= 0) return absl::OkStatus();
  const double slow_gpus = spec_.stragglers().share() * experiment.hardware().gpus();
  if (slow_gpus > kMostStragglers) {
    return absl::InvalidArgumentError(
        absl::StrCat("stragglers: ", slow_gpus, " slow GPUs are more than ", kMostStragglers));
  }
  for (step::Hardware::SlowGpu& slow :
       DrawStragglers(spec_.stragglers(), experiment.hardware().gpus(), *draft.seed)) {
    *experiment.mutable_hardware()->add_slow_gpus() = std::move(slow);
  }
  return absl::OkStatus();
}

absl::Status LoadedSweep::ChangeProfileAndGpus(Draft& draft) {
  OPTIMUS_RETURN_IF_ERROR(draft.point.problem);
  OPTIMUS_RETURN_IF_ERROR(ChangeProfile(draft));
  return AddStragglers(draft);
}

void LoadedSweep::Number(std::int64_t number, Point& point) const {
  point.number = number;
  point.experiment.set_name(absl::StrCat(spec_.name(), "_", number));
}

bool LoadedSweep::keeps_reports() const {
  return std::find(spec_.keep().begin(), spec_.keep().end(), REPORTS) != spec_.keep().end();
}

std::int64_t LoadedSweep::excluded_in_all() const { return combinations_ - points(); }

absl::StatusOr<Point> LoadedSweep::Make(std::int64_t number) {
  OPTIMUS_ASSIGN_OR_RETURN(Draft draft, MakeDraft(kept_[static_cast<std::size_t>(number)]));
  Point& point = draft.point;
  point.problem = ChangeProfileAndGpus(draft);
  if (point.problem.ok()) point.problem = step::CompleteExperiment(point.experiment);
  point.hash = HashOf(point);
  Number(number, point);
  return std::move(point);
}

absl::StatusOr<Point> LoadedSweep::MakeAgain(std::int64_t number) {
  OPTIMUS_ASSIGN_OR_RETURN(Draft draft, MakeDraft(kept_[static_cast<std::size_t>(number)]));
  OPTIMUS_RETURN_IF_ERROR(ChangeProfileAndGpus(draft));
  step::FillDefaults(draft.point.experiment);
  Number(number, draft.point);
  return std::move(draft.point);
}

std::string SweepHash(const LoadedSweep& sweep, const std::vector<std::string>& hashes) {
  std::string text = absl::StrCat(sweep.spec().name(), "\n", sweep.objective(), "\n");
  for (const int keep : sweep.spec().keep()) absl::StrAppend(&text, keep, "\n");
  for (const Column& column : sweep.columns()) {
    absl::StrAppend(&text, column.name, " ", column.type, " ", column.field, "\n");
  }
  return ContentHash(absl::StrCat(text, absl::StrJoin(hashes, "\n")));
}

}  // namespace optimus::sweep
