#include "validation/published/data_set.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace optimus::validation {
namespace {

std::string KnownHeaders() {
  return absl::StrJoin(DataSets(), "; ", [](std::string* out, const DataSet& data_set) {
    absl::StrAppend(out, data_set.name, ": ",
                    absl::StrJoin(data_set.columns, ",", [](std::string* text, const Column& one) {
                      absl::StrAppend(text, one.name);
                    }));
  });
}

}  // namespace

const std::vector<DataSet>& DataSets() {
  static const std::vector<DataSet> data_sets = {
      ZeroBubble(),       Korthikanti(), KorthikantiLayer(), MegatronSc21(),
      MegatronCoreH100(), MegaScale(),   VTrainMultiNode(),  NcclBusBandwidth()};
  return data_sets;
}

const DataSet* FindDataSet(const std::string& name) {
  const std::vector<DataSet>& all = DataSets();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const DataSet& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

absl::StatusOr<const DataSet*> RecognizeDataSet(const CsvTable& table) {
  std::vector<const DataSet*> fit;
  for (const DataSet& one : DataSets()) {
    if (HasColumns(table, one.columns)) fit.push_back(&one);
  }
  if (fit.empty()) {
    return table.file.Error(
        table.header, absl::StrCat("these are the columns of no data set; known: ", KnownHeaders(),
                                   " (in any order)"));
  }
  if (fit.size() == 1) return fit.front();
  const std::string file = std::filesystem::path(table.file.path).filename().string();
  std::vector<std::string> names;
  const DataSet* named = nullptr;
  for (const DataSet* one : fit) {
    names.push_back(one->name);
    if (absl::StrContains(file, one->name)) named = one;
  }
  if (named != nullptr) return named;
  return table.file.Error(table.header,
                          absl::StrCat("these are the columns of ", absl::StrJoin(names, " and "),
                                       "; say which by --dataset"));
}

}  // namespace optimus::validation
