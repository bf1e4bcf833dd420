#include "tools/validate_published_command.h"

#include <chrono>
#include <iostream>
#include <utility>
#include <vector>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "sim/simgrid_runner.h"
#include "tools/exit_codes.h"
#include "tools/out_of_memory.h"
#include "tools/outputs.h"
#include "tools/published_report.h"
#include "tools/resources.h"
#include "tools/shared_flags.h"
#include "tools/text_pieces.h"
#include "tools/validate_command.h"

namespace optimus::tools {
namespace {

constexpr char kFolder[] = "validation/data/";

std::string DataFile(const std::string& name) {
  return absl::StrCat(DataDir(), "/", kFolder, name, ".csv");
}

std::string DataSetNames() {
  return absl::StrJoin(
      validation::DataSets(), ", ",
      [](std::string* out, const validation::DataSet& one) { absl::StrAppend(out, one.name); });
}

absl::StatusOr<ir::Timeline> Simulate(const ir::Schedule& schedule, const CostModel& costs,
                                      bool with_spans) {
  sim::Options options;
  options.record_spans = with_spans;
  return sim::SimGridRunner(costs, options).Run(schedule);
}

struct Table {
  const validation::DataSet* data_set = nullptr;
  CsvTable table;
};

// nullptr where the flag was not given.
absl::StatusOr<const validation::DataSet*> AskedFor(const std::string& name) {
  const validation::DataSet* data_set = validation::FindDataSet(name);
  if (data_set != nullptr || name.empty()) return data_set;
  return absl::NotFoundError(
      absl::StrCat("--dataset: unknown data set '", name, "'; known: ", DataSetNames()));
}

absl::StatusOr<std::vector<Table>> Tables(const ValidatePublishedFlags& flags) {
  OPTIMUS_ASSIGN_OR_RETURN(const validation::DataSet* asked, AskedFor(flags.dataset));
  std::vector<Table> tables;
  if (!flags.file.empty()) {
    OPTIMUS_ASSIGN_OR_RETURN(CsvTable table, ReadCsvTable(flags.file));
    if (asked == nullptr) {
      OPTIMUS_ASSIGN_OR_RETURN(asked, validation::RecognizeDataSet(table));
    }
    tables.push_back({asked, std::move(table)});
    return tables;
  }
  for (const validation::DataSet& one : validation::DataSets()) {
    if (asked != nullptr && asked != &one) continue;
    OPTIMUS_ASSIGN_OR_RETURN(CsvTable table, ReadCsvTable(DataFile(one.name)));
    tables.push_back({&one, std::move(table)});
  }
  return tables;
}

absl::StatusOr<PublishedReport> Evaluate(const ValidatePublishedFlags& flags, Progress& progress) {
  OPTIMUS_ASSIGN_OR_RETURN(std::vector<Table> tables, Tables(flags));
  validation::EvaluateOptions options;
  OPTIMUS_ASSIGN_OR_RETURN(options.targets, validation::ReadTargets(DataFile("targets")));
  OPTIMUS_ASSIGN_OR_RETURN(options.calibrations, validation::ZooCalibrations());
  options.progress = [&](const std::string& text) { progress.Show(text); };
  validation::Simulator simulator(&Simulate);
  std::vector<validation::EvaluatedDataSet> evaluated;
  for (Table& one : tables) {
    OPTIMUS_ASSIGN_OR_RETURN(
        validation::EvaluatedDataSet data_set,
        validation::EvaluateDataSet(*one.data_set, std::move(one.table), options, simulator));
    if (flags.file.empty()) data_set.path = absl::StrCat(kFolder, one.data_set->name, ".csv");
    evaluated.push_back(std::move(data_set));
  }
  return MakePublishedReport(std::move(evaluated), simulator);
}

}  // namespace

CLI::App* AddValidatePublishedCommand(CLI::App& app, ValidatePublishedFlags& flags) {
  CLI::App* command = ValidateGroup(app).add_subcommand(
      "published",
      "Simulate what others measured and published, row by row, and print both values, the error, "
      "and whether the row was used for calibration; per data set mean, median and largest error "
      "and rank correlation. Exits with 2 where a data set misses its target.");
  command->add_option("--dataset", flags.dataset, absl::StrCat("Only this one: ", DataSetNames()))
      ->check(NotEmpty)
      ->type_name("NAME");
  command
      ->add_option("--file", flags.file,
                   "Rows of your own, or more of the same source: a file with the columns of a "
                   "data set, in any order, by which it is recognised unless --dataset says")
      ->check(NotEmpty)
      ->type_name("CSV");
  command->add_flag("--json", flags.json, "Print the same figures as JSON");
  return command;
}

absl::StatusOr<int> RunValidatePublished(const ValidatePublishedFlags& flags) {
  const auto begin = std::chrono::steady_clock::now();
  Progress progress;
  OPTIMUS_ASSIGN_OR_RETURN(const PublishedReport report,
                           CatchOutOfMemory("optimus validate published", "simulating",
                                            [&] { return Evaluate(flags, progress); }));
  progress.Clear();
  OPTIMUS_RETURN_IF_ERROR(WriteStdout(flags.json ? PublishedJson(report) : PublishedText(report)));
  // Not part of the output, which is the same every time.
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  std::cerr << WallLine(wall.count(), PeakMemoryMib());
  const std::string missed = MissedText(report);
  if (missed.empty()) return kExitSuccess;
  SayCheckFailed(missed);
  return kExitCheckFailed;
}

}  // namespace optimus::tools
