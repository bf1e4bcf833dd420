#pragma once
// The experiments of the paper and its published figures, as two CSV files say them.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/csv.h"
#include "schedule/step/experiment.pb.h"

namespace optimus::tools {

// How a model is trained: "megatron", "balanced", "optimus", "optimus_list", "fsdp", "alpa".
struct Method {
  const char* name;
  const char* title;              // "Megatron-LM", ...
  const char* scheduler;          // OPTIMUS: "paper" or "list"; else ""
  step::Plan::Strategy strategy;  // of its experiment files
};
const std::vector<Method>& Methods();
// nullptr for an unknown name. Case, '-' and ' ' do not matter.
const Method* FindMethod(const std::string& name);
std::string MethodNames();  // "megatron, balanced, ..."

// One experiment by one method.
struct PaperCase {
  CsvRow row;
  std::string experiment;
  const Method* method = nullptr;
  std::string file;      // path
  std::string inferred;  // what the paper does not say
  // Quantities whose published values the plan or the model's assumptions were chosen on.
  std::vector<std::string> chosen_on;
};

struct PaperTable {
  int number = 0;
  std::string title;
  std::vector<std::string> quantities;  // shown for every case, where it has them
  std::vector<PaperCase> cases;
};

struct PaperFigure {
  CsvRow row;
  std::string experiment;
  const Method* method = nullptr;
  std::string quantity;
  double value = 0;
  std::string text;  // the value as it is written
  std::string unit, source, note;
  std::vector<std::string> fitted;  // constants of the profile that were chosen on it
};

struct PaperData {
  CsvFile experiments_file, figures_file;
  std::vector<PaperTable> tables;  // by number
  std::vector<PaperFigure> figures;
  // nullptr where no table has it.
  const PaperCase* Find(const std::string& experiment, const Method* method) const;
  // Whether a row of the figure's experiment and method names its quantity in `chosen_on`.
  bool PlanWasChosenOn(const PaperFigure& figure) const;
};

// experiments: table,title,quantities,experiment,method,file,inferred[,chosen_on]. Title and
// quantities (separated by spaces) are given in a table's first row; files are relative to the
// CSV's folder.
// figures: experiment,method,quantity,value,unit,source,note[,fitted].
// INVALID_ARGUMENT "path:line: ..." for what is unknown, given twice or no number.
absl::StatusOr<PaperData> LoadPaperData(const std::string& experiments, const std::string& figures);

}  // namespace optimus::tools
