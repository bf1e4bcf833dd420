// Reading and checking a sweep file.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/beside.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "schedule/step/step.h"
#include "tools/sweep/spec/axis_values.h"
#include "tools/sweep/spec/names.h"
#include "tools/sweep/spec/sweep.h"

namespace optimus::sweep {
namespace {

constexpr double kMostCombinations = 1e6;

absl::Status Named(const std::string& where, const absl::Status& status) {
  if (status.ok()) return status;
  return {status.code(), absl::StrCat(where, ": ", std::string(status.message()))};
}

bool IsPath(const std::string& value) {
  const std::filesystem::path path(value);
  return path.extension() == ".textproto" || path.extension() == ".json" ||
         path.extension() == ".csv";
}

absl::StatusOr<SqlValue> ColumnValue(const FieldPath& field, const std::string& value) {
  const std::string type = field.SqlType();
  std::int64_t integer = 0;
  double real = 0;
  if (type == "INTEGER" && absl::SimpleAtoi(value, &integer)) return integer;
  if (type == "REAL" && absl::SimpleAtod(value, &real) && std::isfinite(real)) return real;
  if (type == "TEXT") return value;
  return absl::InvalidArgumentError(
      absl::StrCat(field.text(), ": \"", value, "\" is no finite number in decimal digits"));
}

std::string Or(const std::string& text, const std::string& otherwise) {
  return text.empty() ? otherwise : text;
}

Column AxisColumn(const FieldPath& field, const std::string& name, const std::string& unit,
                  const std::string& title, ColumnKind kind) {
  return {Or(name, ShortName(field)),       kind, field.SqlType(), Or(unit, UnitOf(field.last())),
          Or(title, TitleOf(field.last())), "",   field.text()};
}

}  // namespace

absl::Status LoadedSweep::ReadFiles(const std::string& path) {
  path_ = path;
  OPTIMUS_RETURN_IF_ERROR(ReadTextProto(path, spec_));
  if (spec_.name().empty()) spec_.set_name(std::filesystem::path(path).stem().string());
  if (spec_.objective().empty()) spec_.set_objective("iteration_time_s");
  if (spec_.base().empty()) {
    return absl::InvalidArgumentError("base: is missing; name an experiment file");
  }
  base_path_ = Beside(path, spec_.base());
  OPTIMUS_ASSIGN_OR_RETURN(base_, step::ReadExperiment(base_path_));
  return absl::OkStatus();
}

absl::StatusOr<FieldValue> LoadedSweep::ParseSetting(const std::string& field,
                                                     const std::string& value) const {
  OPTIMUS_ASSIGN_OR_RETURN(FieldPath path, FieldPath::Parse(field));
  OPTIMUS_RETURN_IF_ERROR(path.CheckValue(value));
  FieldValue setting{path, value};
  if (path.may_be_path() && IsPath(value)) setting.value = Beside(path_, value);
  if (path.root() == FieldPath::Root::kProfile) return setting;
  step::Experiment probe = base_;  // whether its lists are long enough
  OPTIMUS_RETURN_IF_ERROR(path.Set(setting.value, probe));
  return setting;
}

absl::StatusOr<std::vector<FieldValue>> LoadedSweep::ParseSettings(
    const google::protobuf::RepeatedPtrField<Setting>& settings, const std::string& where) const {
  std::vector<FieldValue> parsed;
  parsed.reserve(static_cast<std::size_t>(settings.size()));
  std::set<std::string> fields;
  for (const Setting& setting : settings) {
    if (!fields.insert(setting.field()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": ", setting.field(), " is set twice"));
    }
    absl::StatusOr<FieldValue> value = ParseSetting(setting.field(), setting.value());
    if (!value.ok()) return Named(where, value.status());
    parsed.push_back(*std::move(value));
  }
  return parsed;
}

absl::Status LoadedSweep::AddColumn(Column column) {
  OPTIMUS_RETURN_IF_ERROR(CheckName(column.name));
  for (const ExperimentValue& value : ExperimentValues()) {
    if (column.name != value.name || column.field == value.field) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        column.field.empty() ? "" : absl::StrCat(column.field, ": "), "\"", column.name,
        "\" is what expressions call ", value.field, "; give the column another name"));
  }
  for (const Column& other : columns_) {
    if (other.name == column.name) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", column.name, "\" is the name of two columns; give one a name"));
    }
    if (!column.field.empty() && other.field == column.field) {
      return absl::InvalidArgumentError(
          absl::StrCat(column.field, ": is set by two axes, ", other.name, " and ", column.name));
    }
  }
  columns_.push_back(std::move(column));
  return absl::OkStatus();
}

absl::Status LoadedSweep::AddStrategies() {
  if (spec_.strategies().empty()) return absl::OkStatus();
  Choices choices;
  std::set<std::string> names;
  for (const Strategy& strategy : spec_.strategies()) {
    const std::string where = absl::StrCat("strategies, \"", strategy.name(), "\"");
    if (strategy.name().empty() || !names.insert(strategy.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": every strategy needs a name of its own"));
    }
    Choice choice;
    choice.columns = {strategy.name()};
    OPTIMUS_ASSIGN_OR_RETURN(choice.settings, ParseSettings(strategy.settings(), where));
    choices.push_back(std::move(choice));
  }
  choices_.push_back(std::move(choices));
  return AddColumn({"strategy", ColumnKind::kAxis, "TEXT", "", "strategy", "", ""});
}

absl::StatusOr<LoadedSweep::Choices> LoadedSweep::AxisChoices(const Axis& axis, bool repeats,
                                                              Column& column) const {
  OPTIMUS_ASSIGN_OR_RETURN(const FieldPath field, FieldPath::Parse(axis.field()));
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<std::string> values, AxisValues(axis, field, repeats));
  column = AxisColumn(field, axis.name(), axis.unit(), axis.title(), ColumnKind::kAxis);
  Choices choices;
  choices.reserve(values.size());
  for (const std::string& value : values) {
    Choice& choice = choices.emplace_back();
    OPTIMUS_ASSIGN_OR_RETURN(SqlValue of_column, ColumnValue(field, value));
    choice.columns.push_back(std::move(of_column));
    OPTIMUS_ASSIGN_OR_RETURN(FieldValue setting, ParseSetting(axis.field(), value));
    choice.settings.push_back(std::move(setting));
  }
  return choices;
}

absl::Status LoadedSweep::AddAxis(const Axis& axis) {
  Column column;
  absl::StatusOr<Choices> choices = AxisChoices(axis, /*repeats=*/false, column);
  if (!choices.ok()) return Named("axes", choices.status());
  choices_.push_back(*std::move(choices));
  return Named("axes", AddColumn(std::move(column)));
}

absl::Status LoadedSweep::AddZip(const Zip& zip) {
  if (zip.axes().empty()) return absl::InvalidArgumentError("zips: one has no axes");
  Choices rows;
  for (const Axis& axis : zip.axes()) {
    Column column;
    absl::StatusOr<Choices> choices = AxisChoices(axis, /*repeats=*/true, column);
    if (!choices.ok()) return Named("zips", choices.status());
    if (rows.empty()) rows.resize(choices->size());
    if (rows.size() != choices->size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("zips: ", axis.field(), " has ", choices->size(),
                       " values, the first axis of the zip has ", rows.size()));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].columns.push_back((*choices)[i].columns.front());
      rows[i].settings.push_back((*choices)[i].settings.front());
    }
    OPTIMUS_RETURN_IF_ERROR(Named("zips", AddColumn(std::move(column))));
  }
  std::set<std::vector<SqlValue>> seen;
  for (const Choice& row : rows) {
    if (seen.insert(row.columns).second) continue;
    std::vector<std::string> values;
    for (const SqlValue& value : row.columns) values.push_back(ToText(value));
    return absl::InvalidArgumentError(
        absl::StrCat("zips: the row ", absl::StrJoin(values, ", "), " is there twice"));
  }
  choices_.push_back(std::move(rows));
  return absl::OkStatus();
}

absl::Status LoadedSweep::AddSeeds() {
  if (spec_.has_stragglers() != !spec_.seeds().empty()) {
    return absl::InvalidArgumentError(
        spec_.has_stragglers() ? "stragglers: are drawn by seed; give seeds: [1, 2, 3]"
                               : "seeds: nothing in this sweep is drawn by them; give stragglers");
  }
  if (!spec_.has_stragglers()) return absl::OkStatus();
  const Stragglers& stragglers = spec_.stragglers();
  if (!(stragglers.share() >= 0 && stragglers.share() <= 1)) {
    return absl::InvalidArgumentError("stragglers.share: must be from 0 to 1");
  }
  if (!(stragglers.factor_from() >= 1 && stragglers.factor_to() >= stragglers.factor_from() &&
        std::isfinite(stragglers.factor_to()))) {
    return absl::InvalidArgumentError(
        "stragglers.factor_from, factor_to: must be 1 or more, and in this order");
  }
  Choices choices;
  std::set<std::int64_t> seen;
  for (const std::int64_t seed : spec_.seeds()) {
    if (!seen.insert(seed).second) {
      return absl::InvalidArgumentError(absl::StrCat("seeds: ", seed, " is there twice"));
    }
    choices.push_back({{seed}, {}, seed});
  }
  choices_.push_back(std::move(choices));
  return AddColumn({"seed", ColumnKind::kAxis, "INTEGER", "", "seed", "", ""});
}

std::vector<LoadedSweep::NameSource> LoadedSweep::NamesSoFar() const {
  std::vector<NameSource> names;
  for (const ExperimentValue& value : ExperimentValues()) {
    const bool hidden = std::any_of(columns_.begin(), columns_.end(), [&](const Column& column) {
      return column.name == value.name;
    });
    if (!hidden) names.push_back({value.name, std::nullopt, &value});
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    names.push_back({columns_[i].name, i, nullptr});
  }
  return names;
}

absl::StatusOr<LoadedSweep::Formula> LoadedSweep::MakeFormula(const std::string& text) const {
  std::vector<NameSource> sources = NamesSoFar();
  std::vector<std::string> names;
  names.reserve(sources.size());
  for (const NameSource& source : sources) names.push_back(source.name);
  OPTIMUS_ASSIGN_OR_RETURN(Expression expression, Expression::Parse(*calculator_, text, names));
  return Formula{std::move(sources), std::move(expression)};
}

absl::Status LoadedSweep::AddDerived() {
  for (const Derived& derived : spec_.derived()) {
    const std::string where =
        absl::StrCat("derived, ", Or(derived.name(), Or(derived.field(), "(without a name)")));
    absl::StatusOr<Formula> formula = MakeFormula(derived.expression());
    if (!formula.ok()) return Named(where, formula.status());
    DerivedValue value{std::nullopt, *std::move(formula)};
    Column column{derived.name(),
                  ColumnKind::kDerived,
                  "",
                  derived.unit(),
                  Or(derived.title(), TitleOf(derived.name())),
                  "",
                  ""};
    if (!derived.field().empty()) {
      absl::StatusOr<FieldPath> field = FieldPath::Parse(derived.field());
      if (!field.ok()) return Named(where, field.status());
      value.field = *std::move(field);
      column = AxisColumn(*value.field, derived.name(), derived.unit(), derived.title(),
                          ColumnKind::kDerived);
    }
    OPTIMUS_RETURN_IF_ERROR(Named(where, AddColumn(std::move(column))));
    derived_.push_back(std::move(value));
  }
  return absl::OkStatus();
}

absl::Status LoadedSweep::AddConditions() {
  for (const std::string& text : spec_.conditions()) {
    absl::StatusOr<Formula> formula = MakeFormula(text);
    if (!formula.ok()) return Named("conditions", formula.status());
    conditions_.push_back(*std::move(formula));
  }
  excluded_.resize(conditions_.size());
  return absl::OkStatus();
}

absl::Status LoadedSweep::CheckObjective() {
  std::vector<std::string> names;
  for (const Column& column : MetricColumns()) {
    if (!column.better.empty()) names.push_back(column.name);
  }
  if (std::find(names.begin(), names.end(), spec_.objective()) == names.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "objective: \"", spec_.objective(), "\" is not one of ", absl::StrJoin(names, ", ")));
  }
  for (const int keep : spec_.keep()) {
    if (keep == KEEP_UNSPECIFIED) {
      return absl::InvalidArgumentError("keep: KEEP_UNSPECIFIED keeps nothing; leave it out");
    }
  }
  return absl::OkStatus();
}

absl::Status LoadedSweep::CheckCombinations() {
  double combinations = 1;
  for (const Choices& choices : choices_) combinations *= static_cast<double>(choices.size());
  if (combinations > kMostCombinations) {
    return absl::InvalidArgumentError(
        absl::StrCat("the axes have ", combinations, " combinations, more than ", kMostCombinations,
                     "; hint: zip axes that belong together, derive what "
                     "follows from others, or make several sweeps"));
  }
  combinations_ = static_cast<std::int64_t>(combinations);
  return absl::OkStatus();
}

absl::Status LoadedSweep::Check() {
  OPTIMUS_RETURN_IF_ERROR(CheckObjective());
  OPTIMUS_ASSIGN_OR_RETURN(settings_, ParseSettings(spec_.settings(), "settings"));
  OPTIMUS_RETURN_IF_ERROR(AddStrategies());
  for (const Axis& axis : spec_.axes()) OPTIMUS_RETURN_IF_ERROR(AddAxis(axis));
  for (const Zip& zip : spec_.zips()) OPTIMUS_RETURN_IF_ERROR(AddZip(zip));
  OPTIMUS_RETURN_IF_ERROR(AddSeeds());
  OPTIMUS_RETURN_IF_ERROR(CheckCombinations());
  OPTIMUS_RETURN_IF_ERROR(AddDerived());
  OPTIMUS_RETURN_IF_ERROR(AddConditions());
  return CountPoints();
}

absl::StatusOr<LoadedSweep> LoadedSweep::Load(const std::string& path) {
  LoadedSweep sweep;
  OPTIMUS_ASSIGN_OR_RETURN(Database calculator, Database::InMemory());
  calculator.OnlyCompute();
  sweep.calculator_ = std::make_shared<const Database>(std::move(calculator));
  absl::Status status = sweep.ReadFiles(path);
  if (status.ok()) status = sweep.Check();
  if (status.ok()) return sweep;
  if (absl::StrContains(status.message(), path) ||
      (!sweep.base_path_.empty() && absl::StrContains(status.message(), sweep.base_path_))) {
    return status;
  }
  return Named(path, status);
}

}  // namespace optimus::sweep
