#pragma once
// Every experiment of the paper by every method, simulated, beside the published figures.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/paper_data.h"
#include "tools/quantities.h"

namespace optimus::tools {

struct ReproducedRow {
  std::string experiment;
  const Method* method = nullptr;
  std::string quantity, unit;
  double simulated = 0;
  const PaperFigure* paper = nullptr;  // null where none is known
  std::vector<std::string> fitted;     // constants of the profile that were fitted on it
  bool plan_chosen_on_it = false;      // the plan or the model's assumptions were
  double difference() const { return simulated - paper->value; }
  // Absent where the published figure is 0, or of another machine.
  std::optional<double> error_percent() const;
};

// What the experiment file of a case says it assumes.
struct CaseAssumptions {
  std::string experiment;
  const Method* method = nullptr;
  std::vector<std::string> texts;
};

struct ReproducedTable {
  const PaperTable* table = nullptr;
  std::vector<ReproducedRow> rows;
  std::vector<CaseAssumptions> assumptions;  // of the cases that have rows
  std::vector<std::string> notes;            // on how our values came about
};

struct UsedProfile {
  std::string name, hash;
  InterferenceReport interference;
};

struct Reproduction {
  std::string version;
  std::vector<UsedProfile> profiles;  // in order of first use
  std::vector<ReproducedTable> tables;
  int runs = 0;
  double wall_s = 0, peak_memory_mib = 0;
};

struct ReproductionOptions {
  std::optional<int> table;
  bool no_interference = false;
  std::function<void(const std::string&)> progress;  // one line about what is being done
};

// `data` must outlive the result. NOT_FOUND for a table that is not there; INVALID_ARGUMENT
// "path:line: ..." for a figure that its run cannot have, a
// method that its file does not use, or a constant that the profile was not fitted by; else errors
// of the simulations.
absl::StatusOr<Reproduction> Reproduce(const PaperData& data, const ReproductionOptions& options);

}  // namespace optimus::tools
