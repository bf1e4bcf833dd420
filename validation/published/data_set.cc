#include "validation/published/data_set.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace optimus::validation {
namespace {

std::string Header(const DataSet& data_set) {
  return absl::StrJoin(data_set.columns, ",",
                       [](std::string* out, const Column& one) { absl::StrAppend(out, one.name); });
}

// How many columns of the table the data set does not have, and the other way round.
struct Difference {
  std::vector<std::string> unknown, missing;
  std::size_t size() const { return unknown.size() + missing.size(); }
};

Difference DifferenceOf(const CsvTable& table, const DataSet& data_set) {
  const std::vector<std::string>& names = table.header.fields;
  Difference difference;
  for (const std::string& name : names) {
    const auto is_it = [&](const Column& column) { return column.name == name; };
    if (std::none_of(data_set.columns.begin(), data_set.columns.end(), is_it)) {
      difference.unknown.push_back(absl::StrCat("\"", name, "\""));
    }
  }
  for (const Column& column : data_set.columns) {
    if (column.optional) continue;
    if (std::find(names.begin(), names.end(), column.name) == names.end()) {
      difference.missing.push_back(absl::StrCat("\"", column.name, "\""));
    }
  }
  return difference;
}

// All of them, or some and how many more: a file of something else can have thousands.
std::string Some(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 5;
  const std::size_t shown = std::min(names.size(), kMost);
  std::string text = absl::StrJoin(absl::MakeConstSpan(names).subspan(0, shown), ", ");
  if (names.size() > shown) absl::StrAppend(&text, " and ", names.size() - shown, " more");
  return text;
}

// What a user has to change: against the data set that is nearest, the first of equally near ones.
absl::Status UnknownColumns(const CsvTable& table) {
  const std::vector<DataSet>& all = DataSets();
  const auto nearest =
      std::min_element(all.begin(), all.end(), [&](const DataSet& a, const DataSet& b) {
        return DifferenceOf(table, a).size() < DifferenceOf(table, b).size();
      });
  const Difference difference = DifferenceOf(table, *nearest);
  std::string text = absl::StrCat("these are the columns of no data set; nearest is ",
                                  nearest->name, " (", Header(*nearest), ")");
  if (!difference.unknown.empty()) {
    absl::StrAppend(&text, ", which does not have ", Some(difference.unknown));
  }
  if (!difference.missing.empty()) absl::StrAppend(&text, "; missing: ", Some(difference.missing));
  const auto append_name = [](std::string* out, const DataSet& one) {
    absl::StrAppend(out, one.name);
  };
  return table.file.Error(table.header,
                          absl::StrCat(text, "; say by --dataset if it is another of ",
                                       absl::StrJoin(all, ", ", append_name)));
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
  if (fit.empty()) return UnknownColumns(table);
  if (fit.size() == 1) return fit.front();
  const std::string file = std::filesystem::path(table.file.path).filename().string();
  std::vector<std::string> names;
  std::vector<const DataSet*> named;
  for (const DataSet* one : fit) {
    names.push_back(one->name);
    if (absl::StrContains(file, one->name)) named.push_back(one);
  }
  if (named.size() == 1) return named.front();
  return table.file.Error(table.header,
                          absl::StrCat("these are the columns of ", absl::StrJoin(names, " and "),
                                       "; say which by --dataset, or in the file's name"));
}

}  // namespace optimus::validation
