#include "tools/sweep_show_command.h"

#include <map>
#include <utility>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/staged_files.h"
#include "base/status_macros.h"
#include "tools/exit_codes.h"
#include "tools/outputs.h"
#include "tools/shared_flags.h"
#include "tools/sweep/show/answer.h"
#include "tools/sweep/show/csv.h"
#include "tools/sweep/show/gnuplot.h"
#include "tools/sweep/show/plot_question.h"
#include "tools/sweep_show_json.h"
#include "tools/sweep_show_text.h"

namespace optimus::tools {
namespace {

constexpr char kStandardOutput[] = "-";
constexpr double kLongest_s = 60;

std::vector<std::string> Words(const std::string& list) {
  return absl::StrSplit(list, ',', absl::SkipWhitespace());
}

void AddTableFlags(CLI::App& command, SweepShowFlags& flags) {
  command
      .add_option("--top", flags.top,
                  absl::StrCat("How many of the best to list, 0: all (default: ", sweep::kTop, ")"))
      ->check(CLI::Range(0, 1'000'000'000))
      ->type_name("N");
  command
      .add_option("--sort", flags.sort,
                  "What the best are best in (default: the sweep's objective); -COLUMN: high is "
                  "good, +COLUMN: low is")
      ->check(NotEmpty)
      ->type_name("COLUMN");
  command
      .add_option("--columns", flags.columns,
                  "Columns to print, besides the point's number (default: axes and main metrics)")
      ->check(NotEmpty)
      ->type_name("A,B,...");
  command
      .add_option("--where", flags.where,
                  "An SQL expression over all columns that chooses points: \"tp = 8 and memory_gib "
                  "< 60\"")
      ->check(NotEmpty)
      ->type_name("SQL");
  command
      .add_option("--group-by", flags.group_by, "The best point for all values of these columns")
      ->check(NotEmpty)
      ->type_name("A,B,...");
  command
      .add_option("--pareto", flags.pareto,
                  "Points that no other beats in all of these, by each column's good direction, or "
                  "-COLUMN, +COLUMN as in --sort")
      ->check(NotEmpty)
      ->type_name("A,B,...");
  command.add_flag("--sensitivity", flags.sensitivity,
                   "What each axis does to the objective: by value, and over pairs of points that "
                   "differ in this axis only");
  command.add_flag("--errors", flags.errors,
                   "Points that are impossible or failed, by message, with an example each");
  command.add_flag("--all", flags.all, "Also plans that do not fit into a GPU's memory");
  command.add_flag("--per-seed", flags.per_seed,
                   "Single points, of a sweep with seeds. Without it, points that differ in their "
                   "seed only are one row: the mean over those that ran, and the objective's least "
                   "and most; only --errors, and --csv of every point, are of single points");
}

void AddOutputFlags(CLI::App& command, SweepShowFlags& flags) {
  command.add_flag("--json", flags.json, "Print the same figures as JSON");
  command
      .add_flag("--csv{-}", flags.csv,
                "Print one table as CSV, or write it to a file (--csv=FILE); without another table "
                "asked for: every point, by number")
      ->type_name("FILE");
}

void AddPlotFlags(CLI::App& command, SweepShowFlags& flags) {
  CLI::Option* plot =
      command
          .add_option("--plot", flags.plot,
                      "Draw it with gnuplot: y over x by series; z by x and y; or the Pareto front "
                      "of x and y. Of points that only differ in other axes, the best")
          ->check(CLI::IsMember(std::vector<std::string>(absl::StrSplit(sweep::kPlotKinds, '|'))))
          ->type_name(sweep::kPlotKinds);
  const auto add = [&](const char* name, std::string& value, const char* meaning) {
    command.add_option(name, value, meaning)->needs(plot)->check(NotEmpty)->type_name("COLUMN");
  };
  add("--x", flags.x, "Of the plot (default of pareto: the objective)");
  add("--y", flags.y, "Of the plot (default: the objective; of pareto: memory_gib)");
  add("--z", flags.z, "Of a heat map (default: the objective)");
  add("--series", flags.series, "Of a scaling plot: a line for each of its values");
  command.add_option("--out", flags.out, "File of the plot, *.svg or *.png; may be given again")
      ->needs(plot)
      ->check(NotEmpty)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("FILE");
  command.add_option("--plot-script", flags.plot_script, "Write gnuplot's script, with its data")
      ->needs(plot)
      ->check(NotEmpty)
      ->type_name("FILE");
}

// Nothing that chooses or sorts: CSV is of all points then.
bool AsksForAll(const SweepShowFlags& flags) {
  return !flags.top && flags.sort.empty() && flags.group_by.empty() && flags.pareto.empty() &&
         !flags.sensitivity && !flags.errors;
}

sweep::Question QuestionOf(const SweepShowFlags& flags) {
  sweep::Question question;
  question.filter = {flags.where, flags.all};
  question.top = flags.top;
  question.sort = flags.sort;
  question.columns = Words(flags.columns);
  question.group_by = Words(flags.group_by);
  question.pareto = Words(flags.pareto);
  question.sensitivity = flags.sensitivity;
  question.errors = flags.errors;
  question.plot = !flags.plot.empty();
  const bool only_csv = !flags.csv.empty() && AsksForAll(flags) && !flags.json && !question.plot;
  question.per_seed = flags.per_seed || only_csv;
  return question;
}

absl::StatusOr<std::string> Csv(const sweep::Database& database, const SweepShowFlags& flags,
                                const sweep::Answer& answer) {
  if (!AsksForAll(flags)) {
    OPTIMUS_ASSIGN_OR_RETURN(const sweep::SqlTable table, sweep::TableOf(answer));
    return sweep::ToCsv(table);
  }
  sweep::Filter points = answer.filter;
  points.seeds = {};
  OPTIMUS_RETURN_IF_ERROR(sweep::CheckWhere(database, answer.points_about, points));
  std::vector<std::string> names = sweep::TableColumns(answer.points_about);
  if (!flags.columns.empty()) names = sweep::Names(answer.best->columns);
  OPTIMUS_ASSIGN_OR_RETURN(const auto columns,
                           sweep::FindColumns(answer.points_about, "--columns", names));
  OPTIMUS_ASSIGN_OR_RETURN(const sweep::SqlTable table, sweep::AllRows(database, columns, points));
  return sweep::ToCsv(table);
}

bool WritesCsv(const SweepShowFlags& flags) {
  return !flags.csv.empty() && flags.csv != kStandardOutput;
}

std::vector<NamedFile> Outputs(const SweepShowFlags& flags) {
  std::vector<NamedFile> outputs;
  if (WritesCsv(flags)) outputs.push_back({"--csv", flags.csv});
  for (const std::string& path : flags.out) outputs.push_back({"--out", path});
  if (!flags.plot_script.empty()) outputs.push_back({"--plot-script", flags.plot_script});
  return outputs;
}

absl::Status CheckFlags(const SweepShowFlags& flags) {
  if (!flags.plot.empty() && flags.out.empty() && flags.plot_script.empty()) {
    return absl::InvalidArgumentError(
        "--plot: needs --out=FILE.svg, --out=FILE.png or "
        "--plot-script=FILE");
  }
  if (flags.json && flags.csv == kStandardOutput) {
    return absl::InvalidArgumentError(
        "--csv and --json would both print to standard output; give --csv a file (--csv=FILE)");
  }
  for (const std::string& path : flags.out) {
    OPTIMUS_RETURN_IF_ERROR(sweep::FormatOf("--out", path).status());
  }
  const std::vector<NamedFile> outputs = Outputs(flags);
  for (const NamedFile& output : outputs) {
    OPTIMUS_RETURN_IF_ERROR(CheckWritableFile(output.origin, output.path));
  }
  return CheckOverwrites({{"DB", flags.database}}, outputs);
}

// Of reading the database: other errors name their flag or file already.
absl::Status OfDatabase(const SweepShowFlags& flags, const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) return status;
  return absl::Status(status.code(),
                      absl::StrCat(flags.database, ": ", std::string(status.message())));
}

// Draws every format once, however many files have it.
absl::Status AddPlots(const sweep::Database& database, const sweep::Answer& answer,
                      const SweepShowFlags& flags, StagedFiles& files) {
  const absl::StatusOr<std::string> script = sweep::PlotScript(
      database, answer.about, answer.filter, {flags.plot, flags.x, flags.y, flags.z, flags.series});
  if (!script.ok()) return OfDatabase(flags, script.status());
  if (!flags.plot_script.empty()) OPTIMUS_RETURN_IF_ERROR(files.Add(flags.plot_script, *script));
  std::map<sweep::PlotFormat, std::string> images;
  for (const std::string& path : flags.out) {
    OPTIMUS_ASSIGN_OR_RETURN(const sweep::PlotFormat format, sweep::FormatOf("--out", path));
    if (images[format].empty()) {
      OPTIMUS_ASSIGN_OR_RETURN(images[format], sweep::DrawPlot(*script, format));
    }
    OPTIMUS_RETURN_IF_ERROR(files.Add(path, images[format]));
  }
  return absl::OkStatus();
}

// Plots and CSV files are an answer of their own, unless something else was asked for too.
bool PrintsText(const SweepShowFlags& flags) {
  if (!flags.csv.empty()) return false;
  return flags.plot.empty() || !AsksForAll(flags);
}

absl::Status Print(const SweepShowFlags& flags, const sweep::Answer& answer,
                   const std::string& csv) {
  if (flags.json) return WriteStdout(SweepShowJson(answer));
  if (flags.csv == kStandardOutput) return WriteStdout(csv);
  return PrintsText(flags) ? WriteStdout(SweepShowText(answer)) : absl::OkStatus();
}

absl::Status Show(const sweep::Database& database, const SweepShowFlags& flags) {
  const absl::StatusOr<sweep::Answer> answer = sweep::Ask(database, QuestionOf(flags));
  if (!answer.ok()) return OfDatabase(flags, answer.status());
  absl::StatusOr<std::string> csv = "";
  if (!flags.csv.empty()) csv = Csv(database, flags, *answer);
  if (!csv.ok()) return OfDatabase(flags, csv.status());
  StagedFiles files;
  if (WritesCsv(flags)) OPTIMUS_RETURN_IF_ERROR(files.Add(flags.csv, *csv));
  if (!flags.plot.empty()) OPTIMUS_RETURN_IF_ERROR(AddPlots(database, *answer, flags, files));
  OPTIMUS_RETURN_IF_ERROR(files.Commit());
  OPTIMUS_RETURN_IF_ERROR(Print(flags, *answer, *csv));
  Progress().Say(WroteText(Outputs(flags)));
  return absl::OkStatus();
}

}  // namespace

CLI::App* AddSweepShowCommand(CLI::App& sweep, SweepShowFlags& flags) {
  CLI::App* command = sweep.add_subcommand(
      "show",
      "Answer questions about a sweep's results, finished or not: the best points, the best of "
      "groups, Pareto front, sensitivity, errors; as text, JSON, CSV or a plot.");
  command->add_option("DB", flags.database, "The database of a sweep")
      ->required()
      ->check(NotEmpty)
      ->type_name("");
  AddTableFlags(*command, flags);
  AddOutputFlags(*command, flags);
  AddPlotFlags(*command, flags);
  return command;
}

absl::StatusOr<int> RunSweepShow(const SweepShowFlags& flags) {
  OPTIMUS_RETURN_IF_ERROR(CheckFlags(flags));
  OPTIMUS_ASSIGN_OR_RETURN(sweep::Database database,
                           sweep::Database::Open(flags.database, sweep::Database::Mode::kReadOnly));
  database.LimitTime(kLongest_s);  // --where may ask for anything, also for what never ends
  // All questions see the same state, whatever a running sweep adds meanwhile.
  if (const absl::Status begun = database.Execute("BEGIN"); !begun.ok()) {
    return OfDatabase(flags, begun);
  }
  OPTIMUS_RETURN_IF_ERROR(Show(database, flags));
  return kExitSuccess;
}

}  // namespace optimus::tools
