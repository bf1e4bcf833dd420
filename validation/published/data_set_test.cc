#include "validation/published/data_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/files.h"
#include "base/testing_folder.h"
#include "gmock/gmock.h"
#include "validation/published/calibration.h"
#include "validation/published/targets.h"

namespace optimus::validation {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string DataFile(const std::string& name) {
  return DataDir() + "/validation/data/" + name + ".csv";
}

std::vector<Row> RowsOf(const DataSet& data_set) {
  auto table = ReadCsvTable(DataFile(data_set.name));
  EXPECT_TRUE(table.ok()) << table.status();
  if (!table.ok()) return {};
  auto rows = ReadRows(*std::move(table), data_set.columns);
  EXPECT_TRUE(rows.ok()) << rows.status();
  return rows.ok() ? *rows : std::vector<Row>();
}

absl::StatusOr<const DataSet*> Recognize(const std::string& name, const std::string& header) {
  const TestingFolder folder;
  const std::string path = folder.path() / name;
  std::ofstream(path) << header << "\n";
  auto table = ReadCsvTable(path);
  if (!table.ok()) return table.status();
  return RecognizeDataSet(*table);
}

TEST(DataSets, EveryFileIsReadAndSaysWhereItComesFrom) {
  std::set<std::string> names = {"targets"};
  for (const DataSet& data_set : DataSets()) {
    EXPECT_FALSE(RowsOf(data_set).empty()) << data_set.name;
    EXPECT_GT(data_set.source.size(), 10U) << data_set.name;
    EXPECT_FALSE(data_set.assumptions.empty()) << data_set.name;
    names.insert(data_set.name);
  }
  for (const auto& file : std::filesystem::directory_iterator(DataDir() + "/validation/data")) {
    if (file.path().extension() != ".csv") continue;
    EXPECT_EQ(names.count(file.path().stem().string()), 1U) << file.path();
  }
}

TEST(DataSets, AreRecognizedByTheirColumnsInAnyOrder) {
  const auto layer = Recognize("x.csv", "backward_ms,variant,forward_ms");
  ASSERT_TRUE(layer.ok()) << layer.status();
  EXPECT_EQ((*layer)->name, "korthikanti_layer_22b");
  // An optional column may be there or not.
  for (const char* header :
       {"global_batch,gpus,iteration_s", "gpus,global_batch,iteration_s,mfu_percent"}) {
    const auto megascale = Recognize("x.csv", header);
    ASSERT_TRUE(megascale.ok()) << megascale.status();
    EXPECT_EQ((*megascale)->name, "megascale");
  }
}

TEST(DataSets, TheSameColumnsAreToldApartByTheFilesName) {
  const char* header = "params_b,heads,hidden,layers,tp,pp,gpus,global_batch,tflops_per_gpu";
  const auto h100 = Recognize("more_megatron_core_h100.csv", header);
  ASSERT_TRUE(h100.ok()) << h100.status();
  EXPECT_EQ((*h100)->name, "megatron_core_h100");
  const auto unnamed = Recognize("x.csv", header);
  ASSERT_FALSE(unnamed.ok());
  EXPECT_THAT(std::string(unnamed.status().message()),
              HasSubstr("x.csv:1: these are the columns of megatron_sc21 and megatron_core_h100; "
                        "say which by --dataset, or in the file's name"));
}

TEST(DataSets, TwoNamesInAFilesNameSayNothing) {
  const auto both =
      Recognize("megatron_sc21_and_megatron_core_h100.csv",
                "params_b,heads,hidden,layers,tp,pp,gpus,global_batch,tflops_per_gpu");
  ASSERT_FALSE(both.ok());
  EXPECT_THAT(std::string(both.status().message()), HasSubstr("say which by --dataset"));
}

TEST(DataSets, UnknownHeadersAreHeldAgainstTheNearest) {
  const auto error = [](const std::string& header) {
    const auto unknown = Recognize("x.csv", header);
    EXPECT_FALSE(unknown.ok()) << header;
    return std::string(unknown.status().message());
  };
  EXPECT_THAT(error("gpus,iteration_s"),
              AllOf(HasSubstr("x.csv:1: these are the columns of no data set; nearest is megascale "
                              "(global_batch,gpus,iteration_s,mfu_percent); missing: "
                              "\"global_batch\"; say by --dataset"),
                    HasSubstr("zero_bubble, korthikanti")));
  EXPECT_THAT(error("variant,forward_ms,backward_ms,color,"),
              HasSubstr("nearest is korthikanti_layer_22b (variant,forward_ms,backward_ms), which "
                        "does not have \"color\", \"\"; say"));
  EXPECT_THAT(
      error("a,b,c,d,e,f,g"),
      HasSubstr("which does not have \"a\", \"b\", \"c\", \"d\", \"e\" and 2 more; missing"));
}

// What profiles were fitted on: each entry is one row, and most rows stay predictions.
TEST(Calibrations, AreRowsAndAtMostAThirdOfADataSet) {
  const auto entries = ZooCalibrations();
  ASSERT_TRUE(entries.ok()) << entries.status();
  for (const CalibrationEntry& entry : *entries) {
    const DataSet* data_set = FindDataSet(entry.dataset);
    ASSERT_NE(data_set, nullptr) << entry.dataset;
    int named = 0;
    for (const Row& row : RowsOf(*data_set)) named += entry.Names(row) ? 1 : 0;
    EXPECT_EQ(named, 1) << entry.profile << ", " << entry.dataset;
  }
  for (const DataSet& data_set : DataSets()) {
    const std::vector<Row> rows = RowsOf(data_set);
    std::size_t fitted = 0;
    for (const Row& row : rows)
      fitted += FittedProfiles(*entries, data_set.name, row).empty() ? 0 : 1;
    EXPECT_LE(3 * fitted, rows.size()) << data_set.name;
  }
}

hw::CalibrationRow Entry(const std::string& row) {
  hw::CalibrationRow entry;
  entry.set_dataset("korthikanti_layer_22b");
  entry.set_row(row);
  return entry;
}

TEST(Calibrations, NameRowsByTheirCells) {
  const DataSet& layer = *FindDataSet("korthikanti_layer_22b");
  const auto entry = ParseCalibration("p", Entry("variant=baseline,forward_ms=7.70"));
  ASSERT_TRUE(entry.ok()) << entry.status();
  std::vector<std::string> named;
  for (const Row& row : RowsOf(layer)) {
    if (!FittedProfiles({*entry}, layer.name, row).empty()) named.push_back(row.text("variant"));
    EXPECT_TRUE(FittedProfiles({*entry}, "zero_bubble", row).empty());
  }
  EXPECT_THAT(named, ::testing::ElementsAre("baseline"));
  const auto other = ParseCalibration("p", Entry("color=red"));
  ASSERT_TRUE(other.ok());
  for (const Row& row : RowsOf(layer)) EXPECT_FALSE(other->Names(row));
  for (const char* bad : {"baseline", "variant=", "=baseline", "variant=baseline,"}) {
    EXPECT_THAT(std::string(ParseCalibration("p", Entry(bad)).status().message()),
                HasSubstr("is not written as COLUMN=VALUE"));
  }
}

TEST(Targets, EveryDataSetHasOne) {
  const auto targets = ReadTargets(DataFile("targets"));
  ASSERT_TRUE(targets.ok()) << targets.status();
  for (const DataSet& data_set : DataSets()) {
    EXPECT_TRUE(std::any_of(targets->begin(), targets->end(), [&](const Target& one) {
      return one.dataset == data_set.name;
    })) << data_set.name;
  }
}

TEST(Targets, BadCellsAreNamed) {
  const auto error = [](const std::string& row) {
    const TestingFolder folder;
    const std::string path = folder.path() / "t.csv";
    std::ofstream(path) << "dataset,quantity,group,statistic,limit,note\n" << row << "\n";
    return std::string(ReadTargets(path).status().message());
  };
  EXPECT_THAT(error("nothing,,,mean_abs_error,0.1,"), HasSubstr("t.csv:2: column dataset"));
  EXPECT_THAT(error("megascale,,,mean,0.1,"), HasSubstr("t.csv:2: column statistic: \"mean\""));
  EXPECT_THAT(error("megascale,,,mean_abs_error,much,"), HasSubstr("t.csv:2: column limit"));
}

}  // namespace
}  // namespace optimus::validation
