#pragma once
// Data sets row by row, and what follows from all rows together.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "validation/published/calibration.h"
#include "validation/published/data_set.h"
#include "validation/published/simulator.h"
#include "validation/published/statistics.h"
#include "validation/published/targets.h"

namespace optimus::validation {

struct EvaluatedRow {
  int line = 0;
  std::vector<std::string> conditions;  // cells of DataSet::conditions
  std::vector<Figure> figures;
  std::string note;
  std::vector<std::string> fitted;  // profiles that were fitted on this row; empty: a prediction
  bool prediction() const { return fitted.empty(); }
};

// Figures of one quantity and group, or of several together.
struct Summary {
  std::string quantity, group;  // "" : all
  ErrorSummary errors;
  std::optional<double> kendall_tau;  // over pairs of one quantity
};

struct JudgedTarget {
  Target target;
  std::string group;            // which one where the target is for each
  std::optional<double> value;  // absent: the data set has no such prediction
  bool met() const;             // true where there is nothing to judge
};

struct EvaluatedDataSet {
  const DataSet* data_set = nullptr;
  std::string path;
  std::vector<EvaluatedRow> rows;
  Summary predictions, all;    // of all figures
  std::vector<Summary> parts;  // predictions by quantity and group, in order of appearance
  std::vector<JudgedTarget> targets;
  int calibration_rows() const;
  bool met() const;
};

struct EvaluateOptions {
  std::vector<Target> targets;
  std::vector<CalibrationEntry> calibrations;
  std::function<void(const std::string&)> progress;  // may be empty
};

// Of figures of rows that are predictions, or of all.
Summary SummarizeRows(const std::vector<EvaluatedRow>& rows, const std::string& quantity,
                      const std::string& group, bool predictions_only);

// Errors: "path:line: what is wrong".
absl::StatusOr<EvaluatedDataSet> EvaluateDataSet(const DataSet& data_set, CsvTable table,
                                                 const EvaluateOptions& options,
                                                 Simulator& simulator);

}  // namespace optimus::validation
