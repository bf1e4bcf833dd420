#include "tools/paper_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "tools/quantities.h"

namespace optimus::tools {
namespace {

constexpr int kMostTables = 1000;

std::string Folder(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

std::string FileOf(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).lexically_normal().string();
}

// The quantities of a field, separated by spaces.
absl::StatusOr<std::vector<std::string>> QuantitiesOf(const CsvFile& file, const CsvRow& row,
                                                      const std::string& text) {
  std::vector<std::string> names;
  for (const auto& piece : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::string name(piece);
    if (!IsQuantity(name)) {
      return file.Error(row,
                        absl::StrCat("unknown quantity \"", name, "\"; known: ", QuantityNames()));
    }
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return file.Error(row, absl::StrCat("quantity ", name, " is named twice"));
    }
    names.push_back(name);
  }
  return names;
}

absl::StatusOr<PaperTable*> TableOf(const CsvFile& file, const CsvRow& row, PaperData& data) {
  int number = 0;
  if (!absl::SimpleAtoi(row.fields[0], &number) || number < 1 || number > kMostTables) {
    return file.Error(
        row, absl::StrCat("table \"", row.fields[0], "\" is no number from 1 to ", kMostTables));
  }
  auto table = std::find_if(data.tables.begin(), data.tables.end(),
                            [&](const PaperTable& t) { return t.number == number; });
  const std::string& title = row.fields[1];
  if (table != data.tables.end()) {
    if (title.empty() && row.fields[2].empty()) return &*table;
    return file.Error(row, absl::StrCat("title or quantities of table ", number,
                                        " are given again; leave them out after its first row"));
  }
  if (title.empty()) {
    return file.Error(row, absl::StrCat("the first row of table ", number, " has no title"));
  }
  PaperTable added{number, title, {}, {}};
  OPTIMUS_ASSIGN_OR_RETURN(added.quantities, QuantitiesOf(file, row, row.fields[2]));
  data.tables.push_back(std::move(added));
  return &data.tables.back();
}

absl::StatusOr<const Method*> MethodOf(const CsvFile& file, const CsvRow& row,
                                       const std::string& name) {
  if (const Method* method = FindMethod(name); method != nullptr) return method;
  return file.Error(row, absl::StrCat("unknown method \"", name, "\"; known: ", MethodNames()));
}

// A table that shows a speed-up over a method has a row of the method.
absl::Status CheckReferences(const CsvFile& file, const PaperTable& table) {
  for (const std::string& quantity : table.quantities) {
    const std::string method = ReferenceMethod(quantity);
    if (method.empty() ||
        std::any_of(table.cases.begin(), table.cases.end(),
                    [&](const PaperCase& entry) { return entry.method->name == method; })) {
      continue;
    }
    return file.Error(table.cases.front().row,
                      absl::StrCat("table ", table.number, " shows ", quantity,
                                   ", but has no row of method ", method, "; add one"));
  }
  return absl::OkStatus();
}

absl::Status LoadExperiments(PaperData& data) {
  const CsvFile& file = data.experiments_file;
  std::set<std::string> seen;
  for (const CsvRow& row : file.rows) {
    OPTIMUS_ASSIGN_OR_RETURN(PaperTable * table, TableOf(file, row, data));
    PaperCase entry;
    entry.row = row;
    entry.experiment = row.fields[3];
    OPTIMUS_ASSIGN_OR_RETURN(entry.method, MethodOf(file, row, row.fields[4]));
    if (entry.experiment.empty()) return file.Error(row, "experiment is empty");
    if (row.fields[5].empty()) return file.Error(row, "file is empty");
    entry.file = FileOf(Folder(file.path), row.fields[5]);
    entry.inferred = row.fields[6];
    OPTIMUS_ASSIGN_OR_RETURN(entry.chosen_on, QuantitiesOf(file, row, row.fields[7]));
    const PaperCase* other = data.Find(entry.experiment, entry.method);
    if (other != nullptr && other->file != entry.file) {
      return file.Error(row, absl::StrCat(entry.experiment, " by ", entry.method->name, " is ",
                                          other->file, " in line ", other->row.line));
    }
    if (!seen.insert(absl::StrCat(table->number, "/", entry.experiment, "/", entry.method->name))
             .second) {
      return file.Error(row, absl::StrCat(entry.experiment, " by ", entry.method->name,
                                          " is there twice in table ", table->number));
    }
    table->cases.push_back(std::move(entry));
  }
  for (const PaperTable& table : data.tables) {
    OPTIMUS_RETURN_IF_ERROR(CheckReferences(file, table));
  }
  std::sort(data.tables.begin(), data.tables.end(),
            [](const PaperTable& a, const PaperTable& b) { return a.number < b.number; });
  return absl::OkStatus();
}

std::vector<std::string> ExperimentNames(const PaperData& data) {
  std::vector<std::string> names;
  for (const PaperTable& table : data.tables) {
    for (const PaperCase& entry : table.cases) {
      if (std::find(names.begin(), names.end(), entry.experiment) == names.end()) {
        names.push_back(entry.experiment);
      }
    }
  }
  return names;
}

absl::Status CheckNew(const PaperData& data, const PaperFigure& figure) {
  for (const PaperFigure& other : data.figures) {
    if (other.experiment == figure.experiment && other.method == figure.method &&
        other.quantity == figure.quantity) {
      return data.figures_file.Error(
          figure.row, absl::StrCat(figure.quantity, " of ", figure.experiment, " by ",
                                   figure.method->name, " is already in line ", other.row.line));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFigure(const PaperData& data, const PaperFigure& figure) {
  const CsvFile& file = data.figures_file;
  const std::vector<std::string> experiments = ExperimentNames(data);
  if (std::find(experiments.begin(), experiments.end(), figure.experiment) == experiments.end()) {
    return file.Error(figure.row, absl::StrCat("unknown experiment \"", figure.experiment,
                                               "\"; known: ", absl::StrJoin(experiments, ", ")));
  }
  if (data.Find(figure.experiment, figure.method) == nullptr) {
    return file.Error(figure.row,
                      absl::StrCat(figure.experiment, " has no method ", figure.method->name,
                                   "; add a row to ", data.experiments_file.path));
  }
  if (!IsQuantity(figure.quantity)) {
    return file.Error(figure.row, absl::StrCat("unknown quantity \"", figure.quantity,
                                               "\"; known: ", QuantityNames()));
  }
  if (!SameUnit(figure.unit, UnitOf(figure.quantity))) {
    return file.Error(figure.row, absl::StrCat("unit \"", figure.unit, "\", but ", figure.quantity,
                                               " is in ", UnitOf(figure.quantity)));
  }
  const std::string reference = ReferenceMethod(figure.quantity);
  if (!reference.empty() && data.Find(figure.experiment, FindMethod(reference)) == nullptr) {
    return file.Error(figure.row,
                      absl::StrCat(figure.quantity, ": ", figure.experiment, " has no method ",
                                   reference, "; add a row to ", data.experiments_file.path));
  }
  return CheckNew(data, figure);
}

absl::Status LoadFigure(const CsvRow& row, PaperData& data) {
  const CsvFile& file = data.figures_file;
  PaperFigure figure;
  figure.row = row;
  figure.experiment = row.fields[0];
  OPTIMUS_ASSIGN_OR_RETURN(figure.method, MethodOf(file, row, row.fields[1]));
  figure.quantity = row.fields[2];
  figure.text = row.fields[3];
  // Hexadecimal numbers are refused: nobody publishes one.
  if (figure.text.find_first_of("xX") != std::string::npos ||
      !absl::SimpleAtod(figure.text, &figure.value) || !std::isfinite(figure.value)) {
    return file.Error(row, absl::StrCat("value \"", figure.text, "\" is no number"));
  }
  figure.unit = row.fields[4];
  figure.source = row.fields[5];
  figure.note = row.fields[6];
  figure.fitted = absl::StrSplit(row.fields[7], ' ', absl::SkipEmpty());
  OPTIMUS_RETURN_IF_ERROR(CheckFigure(data, figure));
  data.figures.push_back(std::move(figure));
  return absl::OkStatus();
}

absl::Status LoadFigures(PaperData& data) {
  for (const CsvRow& row : data.figures_file.rows) {
    OPTIMUS_RETURN_IF_ERROR(LoadFigure(row, data));
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<Method>& Methods() {
  static const std::vector<Method> methods = {
      {"megatron", "Megatron-LM", "", step::Plan::PIPELINE},
      {"balanced", "Megatron-LM balanced", "", step::Plan::PIPELINE},
      {"fsdp", "FSDP", "", step::Plan::FSDP},
      {"alpa", "Alpa", "", step::Plan::ALPA},
      {"optimus", "Optimus", "paper", step::Plan::OPTIMUS},
      {"optimus_list", "Optimus, list scheduler", "list", step::Plan::OPTIMUS}};
  return methods;
}

const Method* FindMethod(const std::string& name) {
  const std::string plain =
      absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"-", "_"}, {" ", "_"}});
  for (const Method& method : Methods()) {
    const std::string title = absl::StrReplaceAll(absl::AsciiStrToLower(method.title),
                                                  {{"-", "_"}, {",", ""}, {" ", "_"}});
    if (plain == method.name || plain == title) return &method;
  }
  return nullptr;
}

std::string MethodNames() {
  return absl::StrJoin(Methods(), ", ", [](std::string* out, const Method& method) {
    absl::StrAppend(out, method.name);
  });
}

const PaperCase* PaperData::Find(const std::string& experiment, const Method* method) const {
  for (const PaperTable& table : tables) {
    for (const PaperCase& entry : table.cases) {
      if (entry.experiment == experiment && entry.method == method) return &entry;
    }
  }
  return nullptr;
}

bool PaperData::PlanWasChosenOn(const PaperFigure& figure) const {
  for (const PaperTable& table : tables) {
    for (const PaperCase& entry : table.cases) {
      if (entry.experiment == figure.experiment && entry.method == figure.method &&
          std::find(entry.chosen_on.begin(), entry.chosen_on.end(), figure.quantity) !=
              entry.chosen_on.end()) {
        return true;
      }
    }
  }
  return false;
}

absl::StatusOr<PaperData> LoadPaperData(const std::string& experiments,
                                        const std::string& figures) {
  PaperData data;
  OPTIMUS_ASSIGN_OR_RETURN(
      data.experiments_file,
      ReadCsv(experiments,
              {"table", "title", "quantities", "experiment", "method", "file", "inferred"},
              {"chosen_on"}));
  OPTIMUS_ASSIGN_OR_RETURN(
      data.figures_file,
      ReadCsv(figures, {"experiment", "method", "quantity", "value", "unit", "source", "note"},
              {"fitted"}));
  OPTIMUS_RETURN_IF_ERROR(LoadExperiments(data));
  OPTIMUS_RETURN_IF_ERROR(LoadFigures(data));
  return data;
}

}  // namespace optimus::tools
