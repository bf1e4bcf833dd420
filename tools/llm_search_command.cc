#include "tools/llm_search_command.h"

#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "base/parse_units.h"
#include "base/staged_files.h"
#include "base/status_macros.h"
#include "schedule/ir/serialize.h"
#include "tools/exit_codes.h"
#include "tools/experiment_text.h"
#include "tools/file_kinds.h"
#include "tools/input_files.h"
#include "tools/llm_search_json.h"
#include "tools/llm_search_run.h"
#include "tools/llm_search_text.h"
#include "tools/out_of_memory.h"
#include "tools/outputs.h"
#include "tools/shared_flags.h"
#include "tools/sweep/pool/pool.h"

namespace optimus::tools {
namespace {

constexpr int kMostJobs = 256;
constexpr double kLongestSearch = 1e6;

absl::Status Refuse(const std::string& flag, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", why));
}

absl::Status CheckWithout(const PlanFlags& flags) {
  const PlanFlags fresh;
  const bool set[] = {flags.jobs != fresh.jobs, flags.top != fresh.top,
                      flags.search_time_s != fresh.search_time_s, !flags.experiment.empty(),
                      !flags.memory_limit.empty()};
  const char* const names[] = {"--jobs", "--top", "--search-time", "--experiment",
                               "--memory-limit"};
  for (std::size_t i = 0; i < std::size(set); ++i) {
    if (set[i]) return Refuse(names[i], "is of the search for the LLM's plan; add --search-llm");
  }
  return absl::OkStatus();
}

absl::Status CheckOutputs(const PlanFlags& flags) {
  if (!flags.schedule.empty()) {
    OPTIMUS_RETURN_IF_ERROR(CheckScheduleName(flags.schedule));
    OPTIMUS_RETURN_IF_ERROR(CheckWritableFile("--schedule", flags.schedule));
  }
  if (flags.experiment.empty()) return absl::OkStatus();
  const std::filesystem::path path(flags.experiment);
  if (path.extension() != ".textproto" || IsScheduleFile(flags.experiment)) {
    return Refuse("--experiment",
                  absl::StrCat(flags.experiment,
                               ": an experiment's name ends in .textproto, and not in "
                               ".schedule.textproto"));
  }
  return CheckWritableFile("--experiment", flags.experiment);
}

absl::Status ReadMemoryLimit(const PlanFlags& flags, std::optional<Bytes>& limit) {
  if (flags.memory_limit.empty()) return absl::OkStatus();
  const absl::StatusOr<Bytes> bytes = ParseBytes(flags.memory_limit);
  if (!bytes.ok()) return Refuse("--memory-limit", std::string(bytes.status().message()));
  // What a profile may have at least: gpu.memory_capacity_gib is 0.001 or more.
  constexpr Bytes kLeast(std::int64_t{2} << 20);
  if (*bytes < kLeast) return Refuse("--memory-limit", "must be 2 MiB or more, for example 60GiB");
  limit = *bytes;
  return absl::OkStatus();
}

LlmSearchOptions OptionsOf(const PlanFlags& flags, Progress& progress) {
  LlmSearchOptions options;
  options.file = flags.file;
  options.profile = flags.profile;
  options.no_interference = flags.no_interference;
  options.jobs = sweep::WorkersFor(flags.jobs);
  options.search_time_s = flags.search_time_s;
  options.progress = [&progress](const std::string& text) { progress.Show(text); };
  return options;
}

std::vector<NamedFile> Outputs(const PlanFlags& flags) {
  std::vector<NamedFile> files;
  if (!flags.schedule.empty()) files.push_back({"--schedule", flags.schedule});
  if (!flags.experiment.empty()) files.push_back({"--experiment", flags.experiment});
  return files;
}

absl::Status CheckFiles(const PlanFlags& flags) {
  std::vector<NamedFile> inputs = {{"FILE", flags.file}};
  AddProfileFile("--profile", flags.profile, inputs);
  if (absl::StatusOr<step::Experiment> read = step::ReadExperiment(flags.file); read.ok()) {
    inputs = InputFiles(flags.file, *read);
    AddProfileFile("--profile", flags.profile, inputs);
  }
  return CheckOverwrites(inputs, Outputs(flags));
}

// Planned once more, in this process.
absl::Status AddSchedule(const PlanFlags& flags, const LlmSearchOptions& options,
                         const LlmSearchResult& result, StagedFiles& files) {
  OPTIMUS_ASSIGN_OR_RETURN(const Simulation best,
                           SimulatePlan(result.best, options, /*in_this_process=*/false));
  const Picoseconds step = result.report.plans.front().step;
  if (best.timeline().step != step) {
    return absl::InternalError(absl::StrCat("the best plan took ", ToSeconds(step),
                                            " s in the search, and takes ",
                                            ToSeconds(best.timeline().step), " s again"));
  }
  OPTIMUS_ASSIGN_OR_RETURN(std::string content,
                           ir::EncodeSchedule(flags.schedule, best.step().schedule));
  return files.Add(flags.schedule, std::move(content));
}

absl::Status WriteFiles(const PlanFlags& flags, const LlmSearchOptions& options,
                        const LlmSearchResult& result) {
  StagedFiles files;
  if (!flags.schedule.empty()) {
    OPTIMUS_RETURN_IF_ERROR(AddSchedule(flags, options, result, files));
  }
  if (!flags.experiment.empty()) {
    OPTIMUS_RETURN_IF_ERROR(
        files.Add(flags.experiment, ExperimentText(flags.experiment, result.best)));
  }
  return files.Commit();
}

}  // namespace

void AddLlmSearchFlags(CLI::App& command, PlanFlags& flags) {
  command.add_flag(
      "--search-llm", flags.search_llm,
      "Search the LLM's own plan too: strategy (OPTIMUS, PIPELINE), DP, PP, TP, model "
      "chunks, micro-batch and recomputation, for the same GPUs, global batch and "
      "memory; the rest of the experiment is kept, but for the layout of PIPELINE with "
      "encoders, which is BALANCED. Takes an experiment of strategy PIPELINE too");
  command
      .add_option("--jobs", flags.jobs,
                  "With --search-llm: processes that simulate at the same time; the result is the "
                  "same for any number (default: as many as there are cores)")
      ->check(CLI::Range(1, kMostJobs).description(""))
      ->type_name("N");
  command
      .add_option("--top", flags.top,
                  "With --search-llm: plans to print; the experiment's own is printed in any case")
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--search-time", flags.search_time_s,
                  "With --search-llm: seconds after which nothing more is simulated; the answer "
                  "then says that it is not proven to be the best")
      ->check(CLI::Range(0.0, kLongestSearch).description(""))
      ->type_name("SECONDS")
      ->capture_default_str();
  command
      .add_option(
          "--memory-limit", flags.memory_limit,
          "With --search-llm: memory of a GPU that a plan may need, if the profile's GPU has "
          "more: 60GiB, 64GB")
      ->check(NotEmpty)
      ->type_name("BYTES");
  command
      .add_option("--experiment", flags.experiment,
                  "With --search-llm: write the experiment of the best plan; optimus plan and "
                  "optimus simulate run it")
      ->check(NotEmpty)
      ->type_name("FILE.textproto");
}

absl::Status CheckLlmSearchFlags(const PlanFlags& flags) {
  if (!flags.search_llm) return CheckWithout(flags);
  if (!flags.pipeline.empty()) {
    return Refuse("--pipeline",
                  "--search-llm chooses the pipeline schedule itself (1F1B, interleaved); leave "
                  "one of the two out");
  }
  if (flags.exhaustive) {
    return Refuse("--exhaustive",
                  "tries all splits under one plan of the LLM; write the best plan with "
                  "--experiment first, then plan that one");
  }
  if (IsScheduleFile(flags.file)) {
    return absl::InvalidArgumentError(absl::StrCat(
        flags.file, ": is named as a schedule, which is planned already; give the ", "experiment"));
  }
  if (std::isnan(flags.search_time_s))
    return Refuse("--search-time", "is nan, no number of seconds");
  std::optional<Bytes> limit;
  OPTIMUS_RETURN_IF_ERROR(ReadMemoryLimit(flags, limit));
  return CheckOutputs(flags);
}

absl::StatusOr<int> RunLlmSearch(const PlanFlags& flags) {
  OPTIMUS_RETURN_IF_ERROR(CheckFiles(flags));
  Progress progress(kLogEvery);
  LlmSearchOptions options = OptionsOf(flags, progress);
  OPTIMUS_ASSIGN_OR_RETURN(options.scheduler, ParseScheduler(flags.scheduler));
  OPTIMUS_RETURN_IF_ERROR(ReadMemoryLimit(flags, options.memory_limit));
  OPTIMUS_ASSIGN_OR_RETURN(
      const LlmSearchResult result,
      CatchOutOfMemory(flags.file, "searching", [&] { return SearchLlm(options); }));
  OPTIMUS_RETURN_IF_ERROR(
      CatchOutOfMemory(flags.file, "planning", [&] { return WriteFiles(flags, options, result); }));
  progress.Clear();
  OPTIMUS_RETURN_IF_ERROR(WriteStdout(flags.json ? LlmSearchJson(result.report, flags.top)
                                                 : LlmSearchText(result.report, flags.top)));
  progress.Say(WroteText(Outputs(flags)));
  return kExitSuccess;
}

}  // namespace optimus::tools
