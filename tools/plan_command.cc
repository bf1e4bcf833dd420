#include "tools/plan_command.h"

#include <vector>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/exit_codes.h"
#include "tools/file_kinds.h"
#include "tools/llm_search_command.h"
#include "tools/optimus_json.h"
#include "tools/optimus_text.h"
#include "tools/out_of_memory.h"
#include "tools/outputs.h"
#include "tools/result_files.h"
#include "tools/shared_flags.h"
#include "tools/simulation.h"

namespace optimus::tools {
namespace {

absl::Status CheckFlags(const PlanFlags& flags) {
  OPTIMUS_RETURN_IF_ERROR(ParseScheduler(flags.scheduler).status());
  OPTIMUS_RETURN_IF_ERROR(ParsePipeline(flags.pipeline).status());
  if (IsScheduleFile(flags.file)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.file, ": is named as a schedule, which is planned already; give the ",
                     "experiment, or run it with optimus simulate"));
  }
  if (flags.schedule.empty()) return absl::OkStatus();
  OPTIMUS_RETURN_IF_ERROR(CheckScheduleName(flags.schedule));
  return CheckWritableFile("--schedule", flags.schedule);
}

absl::StatusOr<Simulation> Prepare(const PlanFlags& flags) {
  SimulationOptions options;
  OPTIMUS_ASSIGN_OR_RETURN(options.scheduler, ParseScheduler(flags.scheduler));
  OPTIMUS_ASSIGN_OR_RETURN(options.pipeline, ParsePipeline(flags.pipeline));
  options.exhaustive = flags.exhaustive;
  options.profile = flags.profile;
  options.must_be_optimus = true;
  options.no_interference = flags.no_interference;
  return CatchOutOfMemory(flags.file, "planning",
                          [&] { return Simulation::Prepare(flags.file, options); });
}

}  // namespace

CLI::App* AddPlanCommand(CLI::App& app, PlanFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "plan",
      "Plan an experiment of strategy OPTIMUS: where to put the encoders, how to split the "
      "micro-batches over them, and when each of their kernels runs inside the LLM's bubbles. "
      "Prints all plans, best first, and simulates the best one. With --search-llm the LLM's own "
      "plan is searched too, of strategy OPTIMUS or PIPELINE.");
  command
      ->add_option(
          "FILE", flags.file,
          "An experiment (textproto) with plan.strategy: OPTIMUS; with --search-llm also PIPELINE")
      ->required()
      ->check(NotEmpty)
      ->type_name("");
  AddProfileFlag(*command, flags.profile);
  AddPipelineFlag(*command, flags.pipeline);
  AddSchedulerFlag(*command, flags.scheduler);
  command->add_flag("--exhaustive", flags.exhaustive,
                    "Try all splits of the micro-batches instead of a local search");
  AddNoInterferenceFlag(*command, flags.no_interference);
  command->add_flag("--json", flags.json, "Print the same figures as JSON");
  command
      ->add_option("--schedule", flags.schedule,
                   "Write the schedule of the best plan; the name ends in .schedule.pb (binary) or "
                   ".schedule.textproto (text); optimus simulate runs it")
      ->check(NotEmpty)
      ->type_name("FILE.schedule.pb");
  AddLlmSearchFlags(*command, flags);
  return command;
}

absl::StatusOr<int> RunPlan(const PlanFlags& flags) {
  OPTIMUS_RETURN_IF_ERROR(CheckLlmSearchFlags(flags));
  if (flags.search_llm) return RunLlmSearch(flags);
  OPTIMUS_RETURN_IF_ERROR(CheckFlags(flags));
  Progress progress;
  progress.Show(absl::StrCat("planning ", flags.file));
  std::vector<Simulation> simulations;
  OPTIMUS_ASSIGN_OR_RETURN(Simulation prepared, Prepare(flags));
  simulations.push_back(std::move(prepared));
  Simulation& simulation = simulations.front();
  SimulateFlags files;
  files.files = {flags.file};
  files.schedule = flags.schedule;
  files.profile = flags.profile;
  OPTIMUS_RETURN_IF_ERROR(CheckResultFiles(files, simulations));
  progress.Show(absl::StrCat("simulating ", simulation.name()));
  OPTIMUS_RETURN_IF_ERROR(
      CatchOutOfMemory(flags.file, "simulating", [&] { return simulation.Run(); }));
  OPTIMUS_ASSIGN_OR_RETURN(const Report report, simulation.MakeReport());
  OPTIMUS_RETURN_IF_ERROR(WriteResultFiles(files, simulations, {report}, progress));
  progress.Clear();
  OPTIMUS_RETURN_IF_ERROR(WriteStdout(flags.json ? PlanJson(report) : PlanText(report)));
  progress.Say(WrittenText(files));
  return kExitSuccess;
}

}  // namespace optimus::tools
