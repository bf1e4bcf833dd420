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
  std::vector<std::string> fitted;     // constants of the profile that were chosen on it
  double difference() const { return simulated - paper->value; }
  // Absent where the published figure is 0.
  std::optional<double> error_percent() const;
};

struct ReproducedTable {
  const PaperTable* table = nullptr;
  std::vector<ReproducedRow> rows;
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
// "path:line: ..." for a figure that its run cannot have; else errors of the simulations.
absl::StatusOr<Reproduction> Reproduce(const PaperData& data, const ReproductionOptions& options);

}  // namespace optimus::tools
