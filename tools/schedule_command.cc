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
  return flags.csv == kStdout ? absl::OkStatus() : CheckWritableFile("--csv", flags.csv);
}

// What is run through the pipeline: under OPTIMUS the LLM, encoders run between its operations.
absl::StatusOr<step::Experiment> Pipelined(const step::Experiment& experiment) {
  const step::Plan& plan = experiment.plan();
  if (plan.strategy() == step::Plan::FSDP) {
    return absl::InvalidArgumentError(
        "plan.strategy: FSDP runs no pipeline, so has no order of "
        "one; export PIPELINE, OPTIMUS or ALPA");
  }
  if (plan.strategy() != step::Plan::OPTIMUS) return experiment;
  if (plan.warm_up() == step::Plan::BEST) {
    return absl::InvalidArgumentError(
        "plan.warm_up: BEST of strategy OPTIMUS is chosen with the encoders in place (optimus "
        "plan); set MEGATRON or DEFERRED to export the LLM's order");
  }
  return step::LlmAlone(experiment);
}

absl::StatusOr<pipeline::Order> OrderOf(const Input& input) {
  OPTIMUS_ASSIGN_OR_RETURN(const step::Experiment experiment, Pipelined(input.experiment));
  const hw::ProfileCostModel costs(*input.profile);
  OPTIMUS_ASSIGN_OR_RETURN(step::Step step, step::BuildStep(experiment, costs));
  if (!step.order.has_value()) return absl::InternalError("a pipeline without an order");
  return *std::move(step.order);
}

absl::StatusOr<std::string> CsvOf(const Input& input, pipeline::Order& order) {
  OPTIMUS_ASSIGN_OR_RETURN(order, OrderOf(input));
  return pipeline::WriteComputeSchedule(order);
}

absl::Status WriteCsv(const std::string& path, std::string text) {
  if (path == kStdout) return WriteStdout(text);
  StagedFiles files;
  OPTIMUS_RETURN_IF_ERROR(files.Add(path, std::move(text)));
  return files.Commit();
}

std::string WrittenText(const std::string& path, const pipeline::Order& order) {
  if (path == kStdout) return "";
  const int stages = pipeline::VirtualStageCount(order.placement, order.stages, order.chunks);
  return absl::StrCat(
      "wrote ", path, ": ", order.stages, " ranks, ", stages, " stages",
      order.chunks > 1 ? absl::StrCat(" placed as a ", pipeline::ToString(order.placement)) : "",
      ", ", order.micro_batches, " micro-batches");
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
      "action. An experiment with plan.schedule: CUSTOM reads such a file.");
  command->add_option("FILE", flags.file, "An experiment (textproto)")
      ->required()
      ->check(NotEmpty)
      ->type_name("");
  command->add_option("--csv", flags.csv, "Where to write it; - is standard output")
      ->required()
      ->check(NotEmpty)
      ->type_name("FILE.csv");
  AddProfileFlag(*command, flags.profile, "an order that depends on times is made with its times");
  return command;
}

absl::StatusOr<int> RunScheduleExport(const ScheduleExportFlags& flags) {
  OPTIMUS_RETURN_IF_ERROR(CheckFlags(flags));
  OPTIMUS_ASSIGN_OR_RETURN(const Input input, LoadInput(flags.file, flags.profile));
  if (flags.csv != kStdout) {
    std::vector<NamedFile> inputs = InputFiles(flags.file, input.experiment);
    AddProfileFile("--profile", flags.profile, inputs);
    OPTIMUS_RETURN_IF_ERROR(CheckOverwrites(inputs, {{"--csv", flags.csv}}));
  }
  pipeline::Order order;
  absl::StatusOr<std::string> csv =
      CatchOutOfMemory(flags.file, "making the order", [&] { return CsvOf(input, order); });
  if (!csv.ok()) {
    return absl::Status(csv.status().code(),
                        absl::StrCat(flags.file, ": ", csv.status().message()));
  }
  OPTIMUS_RETURN_IF_ERROR(WriteCsv(flags.csv, *std::move(csv)));
  Progress().Say(WrittenText(flags.csv, order));
  return kExitSuccess;
}

}  // namespace optimus::tools
