#include "tools/schedule_command.h"

#include <utility>
#include <vector>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "base/staged_files.h"
#include "base/status_macros.h"
#include "schedule/pipeline/compute_schedule_csv.h"
#include "schedule/step/check_strategy.h"
#include "schedule/step/step.h"
#include "tools/exit_codes.h"
#include "tools/file_kinds.h"
#include "tools/input_files.h"
#include "tools/out_of_memory.h"
#include "tools/outputs.h"
#include "tools/planned_step.h"
#include "tools/shared_flags.h"

namespace optimus::tools {
namespace {

constexpr char kStdout[] = "-";

absl::Status CheckFlags(const ScheduleExportFlags& flags) {
  if (IsScheduleFile(flags.file)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.file, ": is named as a schedule, whose operations say no order of ",
                     "micro-batches; give the experiment that it was made from"));
  }
  OPTIMUS_RETURN_IF_ERROR(ParsePipeline(flags.pipeline).status());
  return flags.csv == kStdout ? absl::OkStatus() : CheckWritableFile("--csv", flags.csv);
}

struct Exported {
  pipeline::Order order;
  std::string csv;
  std::string choice;  // what planning decided of it; may be empty
};

// What is run through the pipeline: under OPTIMUS the LLM, encoders run between its operations. The
// best of two warm-ups is then the one of the best plan, which has the encoders in place.
absl::StatusOr<step::Experiment> Pipelined(const Input& input, std::string& choice) {
  const step::Plan& plan = input.experiment.plan();
  if (plan.strategy() == step::Plan::FSDP) {
    return absl::InvalidArgumentError(
        "plan.strategy: FSDP runs no pipeline, so has no order of "
        "one; export PIPELINE, OPTIMUS or ALPA");
  }
  if (plan.strategy() != step::Plan::OPTIMUS) return input.experiment;
  step::Experiment alone = step::LlmAlone(input.experiment);
  if (plan.warm_up() != step::Plan::BEST) return alone;
  OPTIMUS_ASSIGN_OR_RETURN(const PlannedStep planned,
                           PlanStep(input, nullptr, PlanBySimulator(input.experiment.hardware())));
  if (!planned.optimus.has_value()) return absl::InternalError("OPTIMUS without a plan");
  const step::Plan::WarmUp warm_up = planned.optimus->plan.ranked.front().warm_up;
  alone.mutable_plan()->set_warm_up(warm_up);
  choice = absl::StrCat(WarmUpText(warm_up), " warm-up, as the best plan has it");
  return alone;
}

absl::StatusOr<Exported> Export(const Input& input) {
  Exported exported;
  OPTIMUS_ASSIGN_OR_RETURN(const step::Experiment experiment, Pipelined(input, exported.choice));
  const hw::ProfileCostModel costs(*input.profile);
  OPTIMUS_ASSIGN_OR_RETURN(step::Step step, step::BuildStep(experiment, costs));
  if (!step.order.has_value()) return absl::InternalError("a pipeline without an order");
  exported.order = *std::move(step.order);
  OPTIMUS_ASSIGN_OR_RETURN(exported.csv, pipeline::WriteComputeSchedule(exported.order));
  return exported;
}

absl::Status WriteCsv(const std::string& path, std::string text) {
  if (path == kStdout) return WriteStdout(text);
  StagedFiles files;
  OPTIMUS_RETURN_IF_ERROR(files.Add(path, std::move(text)));
  return files.Commit();
}

std::string WrittenText(const std::string& path, const Exported& exported) {
  if (path == kStdout) return "";
  const pipeline::Order& order = exported.order;
  const int stages = pipeline::VirtualStageCount(order.placement, order.stages, order.chunks);
  return absl::StrCat(
      "wrote ", path, ": ", order.stages, " ranks, ", stages, " stages",
      order.chunks > 1 ? absl::StrCat(" placed as a ", pipeline::ToString(order.placement)) : "",
      ", ", order.micro_batches, " micro-batches", exported.choice.empty() ? "" : "; ",
      exported.choice);
}

// The command that all are under.
CLI::App& Group(CLI::App& app) {
  CLI::App* group = app.add_subcommand("schedule", "Pipeline schedules of other programs.");
  group->require_subcommand(1);
  return *group;
}

}  // namespace

CLI::App* AddScheduleExportCommand(CLI::App& app, ScheduleExportFlags& flags) {
  CLI::App* command = Group(app).add_subcommand(
      "export",
      "Write the pipeline order of an experiment as the pipeline-schedule CSV of PyTorch "
      "(torch.distributed.pipelining) and torchtitan: one row a pipeline stage, one cell an "
      "action. An experiment with plan.schedule: CUSTOM reads such a file. Of strategy OPTIMUS it "
      "is the LLM's order.");
  command->add_option("FILE", flags.file, "An experiment (textproto)")
      ->required()
      ->check(NotEmpty)
      ->type_name("");
  command->add_option("--csv", flags.csv, "Where to write it; - is standard output")
      ->required()
      ->check(NotEmpty)
      ->type_name("FILE.csv");
  AddPipelineFlag(*command, flags.pipeline);
  AddProfileFlag(*command, flags.profile, "an order that depends on times is made with its times");
  return command;
}

absl::StatusOr<int> RunScheduleExport(const ScheduleExportFlags& flags) {
  OPTIMUS_RETURN_IF_ERROR(CheckFlags(flags));
  OPTIMUS_ASSIGN_OR_RETURN(const std::optional<step::Plan::PipelineSchedule> pipeline,
                           ParsePipeline(flags.pipeline));
  OPTIMUS_ASSIGN_OR_RETURN(const Input input, LoadInput(flags.file, flags.profile, pipeline));
  if (flags.csv != kStdout) {
    std::vector<NamedFile> inputs = InputFiles(flags.file, input.experiment);
    AddProfileFile("--profile", flags.profile, inputs);
    OPTIMUS_RETURN_IF_ERROR(CheckOverwrites(inputs, {{"--csv", flags.csv}}));
  }
  Progress progress;
  progress.Show(absl::StrCat("making the order of ", flags.file));
  absl::StatusOr<Exported> exported =
      CatchOutOfMemory(flags.file, "making the order", [&] { return Export(input); });
  progress.Clear();
  if (!exported.ok()) return NameFile(flags.file, exported.status());
  OPTIMUS_RETURN_IF_ERROR(WriteCsv(flags.csv, std::move(exported->csv)));
  progress.Say(WrittenText(flags.csv, *exported));
  return kExitSuccess;
}

}  // namespace optimus::tools
