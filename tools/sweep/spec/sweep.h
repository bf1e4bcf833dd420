#pragma once
// A sweep file, read and checked, and its points: which there are, and what each one simulates.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hw_profiles/profile.h"
#include "schedule/step/experiment.pb.h"
#include "tools/sweep/spec/expression.h"
#include "tools/sweep/spec/field_path.h"
#include "tools/sweep/spec/names.h"
#include "tools/sweep/spec/sweep.pb.h"
#include "tools/sweep/store/schema.h"

namespace optimus::sweep {

struct FieldValue {
  FieldPath field;
  std::string value;
};

// One combination of the axes' values.
struct Point {
  std::int64_t number = 0;        // among the points of the sweep, from 0
  std::vector<SqlValue> columns;  // of axes and derived values, as Sweep::columns
  // The experiment with defaults filled in, and the profile that it names, changed; as far as it
  // came where `problem` is an error.
  step::Experiment experiment;
  hw::HardwareProfile profile;
  // INVALID_ARGUMENT, ...: why it cannot be simulated ("plan.tensor_parallel: ...").
  absl::Status problem;
  // Of everything that decides the result, but for the version of optimus: equal points are equal
  // simulations. 16 hex digits.
  std::string hash;
};

class LoadedSweep {
 public:
  // Reads the file and its base, and checks all that can be checked without building a point: field
  // paths, values, names, expressions. Errors name file and field.
  static absl::StatusOr<LoadedSweep> Load(const std::string& path);

  const Sweep& spec() const { return spec_; }  // its name filled in
  const std::string& path() const { return path_; }
  const std::string& base_path() const { return base_path_; }
  const std::string& objective() const { return spec_.objective(); }
  bool keeps_reports() const;  // keep: REPORTS
  // Axes first ("strategy", axes, zips, "seed"), then derived values.
  const std::vector<Column>& columns() const { return columns_; }
  std::int64_t combinations() const { return combinations_; }
  // How many each condition leaves out, in their order; a combination counts for the first one.
  const std::vector<std::int64_t>& excluded() const { return excluded_; }
  std::int64_t excluded_in_all() const;
  std::int64_t points() const { return static_cast<std::int64_t>(kept_.size()); }

  // Builds one. Errors other than Point::problem: an expression that cannot be computed. Keeps
  // profiles that it has read.
  absl::StatusOr<Point> Make(std::int64_t number);
  // The same for a point whose Make had no problem, in half the time: nothing is checked again, and
  // its hash is left empty.
  absl::StatusOr<Point> MakeAgain(std::int64_t number);

 private:
  // Choices of which every point takes one: the values of an axis, the strategies, the rows of a
  // zip, the seeds.
  struct Choice {
    std::vector<SqlValue> columns;  // one, of a zip several
    std::vector<FieldValue> settings;
    std::optional<std::int64_t> seed;
  };
  using Choices = std::vector<Choice>;
  // Where an expression finds the value of a name: in a column, or in the experiment as it then is.
  struct NameSource {
    std::string name;
    std::optional<std::size_t> column;
    const ExperimentValue* value = nullptr;
  };
  struct Formula {
    std::vector<NameSource> sources;
    Expression expression;
  };
  struct DerivedValue {
    std::optional<FieldPath> field;
    Formula formula;
  };
  // A combination, before it is known whether it can be simulated.
  struct Draft {
    Point point;
    std::vector<FieldValue> profile_changes;
    std::optional<std::int64_t> seed;
  };

  LoadedSweep() = default;
  absl::Status ReadFiles(const std::string& path);
  absl::Status Check();
  absl::Status AddStrategies();
  absl::Status AddAxis(const Axis& axis);
  absl::Status AddZip(const Zip& zip);
  absl::Status AddSeeds();
  absl::Status AddDerived();
  absl::Status AddConditions();
  absl::Status AddColumn(Column column);
  absl::Status CheckObjective();
  absl::Status CheckCombinations();
  absl::StatusOr<FieldValue> ParseSetting(const std::string& field, const std::string& value) const;
  absl::StatusOr<std::vector<FieldValue>> ParseSettings(
      const google::protobuf::RepeatedPtrField<Setting>& settings, const std::string& where) const;
  absl::StatusOr<Choices> AxisChoices(const Axis& axis, bool repeats, Column& column) const;
  std::vector<NameSource> NamesSoFar() const;
  absl::StatusOr<Formula> MakeFormula(const std::string& text) const;

  absl::Status CountPoints();
  absl::StatusOr<Draft> MakeDraft(std::int64_t combination);
  static absl::Status Apply(const FieldValue& setting, Draft& draft);
  static absl::StatusOr<SqlValue> Compute(Formula& formula, const Draft& draft);
  absl::Status Derive(DerivedValue& derived, const Column& column, Draft& draft);
  // The first condition that leaves it out.
  absl::StatusOr<std::optional<std::size_t>> ExcludedBy(const Draft& draft);
  absl::Status AddStragglers(Draft& draft) const;
  absl::Status ChangeProfileAndGpus(Draft& draft);
  void Number(std::int64_t number, Point& point) const;
  absl::Status ChangeProfile(Draft& draft);
  absl::StatusOr<hw::HardwareProfile> ProfileNamed(const std::string& name);

  std::string path_, base_path_;
  Sweep spec_;
  step::Experiment base_;
  std::vector<FieldValue> settings_;
  std::vector<Choices> choices_;
  std::vector<Column> columns_;
  std::shared_ptr<const Database> calculator_;
  std::vector<DerivedValue> derived_;
  std::vector<Formula> conditions_;
  std::int64_t combinations_ = 1;
  std::vector<std::int64_t> excluded_;
  std::vector<std::int64_t> kept_;  // combinations, ascending
  std::map<std::string, hw::HardwareProfile> profiles_;
};

// Of the whole sweep: its points, names and what is kept. Two sweeps of the same hash have the same
// tables. `hashes`: of the points, in their order.
std::string SweepHash(const LoadedSweep& sweep, const std::vector<std::string>& hashes);

// GPUs that `stragglers` slows down: the same for the same seed, on any machine.
std::vector<step::Hardware::SlowGpu> DrawStragglers(const Stragglers& stragglers, std::int64_t gpus,
                                                    std::int64_t seed);

}  // namespace optimus::sweep
