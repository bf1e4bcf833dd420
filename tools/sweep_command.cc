#include "tools/sweep_command.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/parse_units.h"
#include "base/status_macros.h"
#include "tools/exit_codes.h"
#include "tools/outputs.h"
#include "tools/shared_flags.h"
#include "tools/sweep/run/engine.h"
#include "tools/sweep/show/csv.h"
#include "tools/sweep/store/schema.h"
#include "tools/sweep_evaluate.h"
#include "tools/sweep_point.h"
#include "tools/sweep_report.h"
#include "tools/text_pieces.h"

namespace optimus::tools {
namespace {

constexpr int kMostJobs = 1024;

volatile std::sig_atomic_t interrupted = 0;
void Interrupt(int signal) { interrupted = signal; }

// While it lives, interrupts end the sweep between two results.
class CatchInterrupts {
 public:
  CatchInterrupts() {
    interrupted = 0;
    old_int_ = std::signal(SIGINT, Interrupt);
    old_term_ = std::signal(SIGTERM, Interrupt);
  }
  ~CatchInterrupts() {
    std::signal(SIGINT, old_int_);
    std::signal(SIGTERM, old_term_);
  }
  CatchInterrupts(const CatchInterrupts&) = delete;
  CatchInterrupts& operator=(const CatchInterrupts&) = delete;

 private:
  using Handler = void (*)(int);
  Handler old_int_, old_term_;
};

absl::Status BadFlag(const std::string& flag, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", what));
}

absl::StatusOr<sweep::Shard> ParseShard(const std::string& text) {
  sweep::Shard shard;
  if (text.empty()) return shard;
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &shard.index) ||
      !absl::SimpleAtoi(parts[1], &shard.count) || shard.index < 0 || shard.count < 1 ||
      shard.index >= shard.count) {
    return BadFlag("--shard", absl::StrCat("\"", text, "\" is not i/n with i from 0 to n - 1"));
  }
  return shard;
}

absl::StatusOr<sweep::JobLimits> ParseLimits(const SweepFlags& flags) {
  sweep::JobLimits limits;
  if (!flags.time_limit.empty()) {
    const absl::StatusOr<Picoseconds> limit = ParseDuration(flags.time_limit);
    if (!limit.ok()) return BadFlag("--time-limit", std::string(limit.status().message()));
    if (*limit <= Picoseconds(0)) return BadFlag("--time-limit", "must be above 0");
    limits.wall_s = ToSeconds(*limit);
  }
  if (!flags.memory_limit.empty()) {
    const absl::StatusOr<Bytes> limit = ParseBytes(flags.memory_limit);
    if (!limit.ok()) return BadFlag("--memory-limit", std::string(limit.status().message()));
    if (*limit <= Bytes(0)) return BadFlag("--memory-limit", "must be above 0");
    limits.memory_bytes = limit->value();
  }
  return limits;
}

absl::Status CheckFiles(const SweepFlags& flags, const sweep::LoadedSweep& sweep) {
  std::vector<NamedFile> outputs = {{"--db", flags.database}};
  OPTIMUS_RETURN_IF_ERROR(CheckReplaceable("--db", flags.database));
  if (!flags.csv.empty()) {
    OPTIMUS_RETURN_IF_ERROR(CheckWritableFile("--csv", flags.csv));
    outputs.push_back({"--csv", flags.csv});
  }
  return CheckOverwrites({{"SWEEP", flags.file}, {"base", sweep.base_path()}}, outputs);
}

std::string ProgressText(const sweep::EngineProgress& progress) {
  std::string text = absl::StrCat(progress.done, " of ", progress.all, " simulations");
  if (progress.done == 0 || progress.elapsed_s <= 0) return text;
  const double rate = static_cast<double>(progress.done) / progress.elapsed_s;
  const double left_s = static_cast<double>(progress.all - progress.done) / rate;
  absl::StrAppendFormat(&text, ", %.1f/s, %.0f s left", rate, left_s);
  return text;
}

// Said before the first simulation.
std::string ImpossibleText(const sweep::Survey& survey) {
  if (survey.problems.empty()) return "";
  const sweep::Survey::Problem& first = survey.problems.front();
  return absl::StrCat(survey.impossible_points, " of ", Count(survey.points, "point", "points"),
                      " are impossible, ", survey.points - survey.impossible_points,
                      " remain; point ", first.first_point, ": ", first.example);
}

absl::StatusOr<sweep::Survey> SurveyOnly(sweep::LoadedSweep& sweep, const sweep::Shard& shard) {
  return sweep::SurveyPoints(
      sweep, shard, [](const sweep::Point& /*point*/, bool /*first*/) { return absl::OkStatus(); });
}

absl::StatusOr<sweep::EngineOptions> MakeOptions(const SweepFlags& flags,
                                                 const sweep::LoadedSweep& sweep) {
  sweep::EngineOptions options;
  options.database = flags.database;
  options.resume = flags.resume;
  options.workers = sweep::WorkersFor(flags.jobs);
  OPTIMUS_ASSIGN_OR_RETURN(options.shard, ParseShard(flags.shard));
  OPTIMUS_ASSIGN_OR_RETURN(options.limits, ParseLimits(flags));
  const bool reports = sweep.keeps_reports();
  options.evaluate = [reports](const sweep::Point& point) { return EvaluatePoint(point, reports); };
  options.stop = [] { return interrupted != 0; };
  return options;
}

absl::Status WriteCsv(const SweepFlags& flags) {
  if (flags.csv.empty()) return absl::OkStatus();
  OPTIMUS_ASSIGN_OR_RETURN(const sweep::Database database,
                           sweep::Database::Open(flags.database, sweep::Database::Mode::kReadOnly));
  OPTIMUS_ASSIGN_OR_RETURN(const sweep::About about, sweep::ReadAbout(database));
  OPTIMUS_ASSIGN_OR_RETURN(const std::string csv, sweep::TableCsv(database, about));
  return WriteFileAtomically(flags.csv, csv);
}

absl::Status Interrupted(const SweepFlags& flags) {
  return absl::UnavailableError(absl::StrCat(flags.database, ": interrupted by signal ",
                                             static_cast<int>(interrupted),
                                             "; what was simulated is kept, --resume goes on"));
}

int Finished(const SweepFlags& flags, const sweep::EngineResult& result) {
  const std::int64_t failed = result.counts.by_chance();
  if (failed == 0) return kExitSuccess;
  SayCheckFailed(absl::StrCat(Count(failed, "point has", "points have"),
                              " no result, see optimus sweep show ", flags.database,
                              " --errors; --resume tries them again"));
  return kExitCheckFailed;
}

absl::StatusOr<int> DryRun(const SweepFlags& flags, sweep::LoadedSweep& sweep,
                           const sweep::Shard& shard) {
  SweepReport report;
  report.sweep = &sweep;
  report.shard = shard;
  OPTIMUS_ASSIGN_OR_RETURN(report.survey, SurveyOnly(sweep, shard));
  OPTIMUS_RETURN_IF_ERROR(WriteStdout(flags.json ? SweepJson(report) : SurveyText(report)));
  return kExitSuccess;
}

}  // namespace

CLI::App& SweepGroup(CLI::App& app) {
  const auto is_it = [](const CLI::App* command) { return command->get_name() == "sweep"; };
  for (CLI::App* group : app.get_subcommands(is_it)) return *group;
  CLI::App* group = app.add_subcommand(
      "sweep",
      "Simulate many experiments: a base, and axes over any of its fields. Results go into a "
      "SQLite "
      "database as they come; a sweep that was ended goes on with --resume. See docs/sweeps.md.");
  group->require_subcommand(0, 1);
  return *group;
}

CLI::App* AddSweepCommand(CLI::App& app, SweepFlags& flags) {
  CLI::App* command = &SweepGroup(app);
  command->add_option("SWEEP", flags.file, "A sweep (textproto); examples in examples/sweeps")
      ->check(NotEmpty)
      ->type_name("");
  command->add_option("--db", flags.database, "Database of the results")
      ->check(NotEmpty)
      ->type_name("FILE.sqlite")
      ->capture_default_str();
  command
      ->add_option("--jobs", flags.jobs,
                   "Simulations at the same time; default: as many as there are cores")
      ->check(CLI::Range(1, kMostJobs))
      ->type_name("N");
  command->add_flag("--resume", flags.resume,
                    "Go on with a database that is there: what is done stays, what failed or was "
                    "not reached is simulated");
  command->add_option("--shard", flags.shard, "Part i of n of the simulations, from 0")
      ->type_name("i/n");
  command
      ->add_option("--time-limit", flags.time_limit,
                   "Of one point, with a unit; a longer one is a row with its error")
      ->type_name("TIME");
  command
      ->add_option("--memory-limit", flags.memory_limit,
                   "Of one process (its address space), with a unit; likewise")
      ->type_name("SIZE");
  command->add_flag(
      "--dry-run", flags.dry_run,
      "Only check the sweep, and say how many points it has and which are impossible");
  CLI::Option* point =
      command
          ->add_option("--point", flags.point,
                       "Only write this point, by its number, as an experiment: see --experiment")
          ->check(CLI::Range(0, 1'000'000'000))
          ->type_name("N");
  CLI::Option* experiment =
      command
          ->add_option("--experiment", flags.experiment,
                       "With --point: the file, for optimus simulate and plan; a profile that axes "
                       "change comes beside it, as FILE_profile.textproto")
          ->check(NotEmpty)
          ->needs(point)
          ->type_name("FILE.textproto");
  point->needs(experiment);
  command->add_option("--csv", flags.csv, "Write the table of all points at the end")
      ->check(NotEmpty)
      ->type_name("FILE.csv");
  command->add_flag("--json", flags.json, "Print the summary as JSON");
  // What is about a run.
  for (const char* other : {"--resume", "--shard", "--time-limit", "--memory-limit", "--dry-run",
                            "--csv", "--json", "--jobs"}) {
    point->excludes(command->get_option(other));
  }
  return command;
}

absl::StatusOr<int> RunSweepCommand(const SweepFlags& flags) {
  if (flags.file.empty()) {
    return absl::InvalidArgumentError(
        "SWEEP is required: a sweep file, or show or merge (see optimus sweep --help)");
  }
  Progress progress(kLogEvery);
  progress.Show(absl::StrCat("reading ", flags.file));
  OPTIMUS_ASSIGN_OR_RETURN(sweep::LoadedSweep sweep, sweep::LoadedSweep::Load(flags.file));
  if (flags.point) {
    progress.Clear();
    return WritePoint(sweep, *flags.point, flags.experiment);
  }
  OPTIMUS_ASSIGN_OR_RETURN(sweep::EngineOptions options, MakeOptions(flags, sweep));
  if (flags.dry_run) {
    progress.Clear();
    return DryRun(flags, sweep, options.shard);
  }
  OPTIMUS_RETURN_IF_ERROR(CheckFiles(flags, sweep));
  options.surveyed = [&](const sweep::Survey& survey) { progress.Say(ImpossibleText(survey)); };
  options.progress = [&](const sweep::EngineProgress& now) { progress.Show(ProgressText(now)); };
  progress.Show(absl::StrCat("checking ", sweep.points(), " points"));
  absl::StatusOr<sweep::EngineResult> result = [&] {
    const CatchInterrupts catch_interrupts;
    return sweep::RunSweep(sweep, options);
  }();
  progress.Clear();
  if (absl::IsCancelled(result.status())) return Interrupted(flags);
  if (!result.ok()) return result.status();
  OPTIMUS_RETURN_IF_ERROR(WriteCsv(flags));
  const SweepReport report{&sweep, result->survey, options.shard, flags.database, &*result};
  OPTIMUS_RETURN_IF_ERROR(WriteStdout(flags.json ? SweepJson(report) : SweepText(report)));
  return Finished(flags, *result);
}

}  // namespace optimus::tools
