#include "tools/run_on_ranks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/staged_files.h"
#include "base/status_macros.h"
#include "schedule/ir/serialize.h"
#include "tools/exit_codes.h"
#include "tools/facts.h"
#include "tools/input_files.h"
#include "tools/launched.h"
#include "tools/out_of_memory.h"
#include "tools/outputs.h"
#include "tools/report_json.h"
#include "tools/report_text.h"
#include "tools/resources.h"
#include "tools/scaled_timeline.h"
#include "tools/shared_flags.h"
#include "tools/text_pieces.h"
#include "traces/perfetto.h"

namespace optimus::tools {
namespace {

using executor::BackendKind;

// What a rank may fill: of a GPU all, of a host its part.
Bytes MemoryOfRank(const executor::Device& device, const executor::World& world, BackendKind kind) {
  if (kind == BackendKind::kCuda) return device.memory();
  return Bytes(device.memory().value() / std::max(1, world.local_size()));
}

// The plan that strategy OPTIMUS chose, in one line.
Fact PlanFact(const OptimusReport& optimus) {
  const colocate::RankedPlan& best = optimus.plan.ranked.front();
  std::string text = absl::StrCat("encoders ", PlansText(best.encoders));
  for (const planner::Split& split : best.splits) {
    absl::StrAppend(&text, ", micro-batches ", SplitText(split));
  }
  absl::StrAppend(&text, "; predicted by the ", optimus.scheduler,
                  " scheduler: ", TimeUnit(best.predicted).WithName(best.predicted));
  return {"plan", text};
}

}  // namespace

absl::Status CheckWorldSize(const Input& input, int started, const Arguments& arguments) {
  const int needed = input.world.gpus();
  if (needed == started) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: this schedule needs %d %s (DP %d x PP %d x TP %d), %d %s started: %s", input.path,
      needed, needed == 1 ? "rank" : "ranks", input.world.dp, input.world.pp, input.world.tp,
      started, started == 1 ? "was" : "were", LaunchCommand(needed, arguments)));
}

absl::StatusOr<int> RunOnRanks::Run() {
  OPTIMUS_ASSIGN_OR_RETURN(const std::string jobs, ranks_.FromFirst([this] { return Plan(); }));
  absl::StatusOr<std::vector<Job>> decoded = DecodeJobs(jobs);
  if (decoded.ok()) job_ = std::move(decoded->front());
  OPTIMUS_RETURN_IF_ERROR(ranks_.Agree(decoded.status()));
  OPTIMUS_RETURN_IF_ERROR(Build());
  executor::RunOptions options;
  options.warm_up = flags_.warm_up;
  options.steps = flags_.iterations;
  executor::Watchdog& watchdog = ranks_.watchdog();
  watchdog.Follow(
      "runs the schedule", [this] { return runtime_->DescribeCurrent(); },
      [this] { return runtime_->ended(); });
  OPTIMUS_ASSIGN_OR_RETURN(
      const executor::RunResult result,
      executor::Run(*runtime_, ranks_.world(), options, [&watchdog] { return watchdog.Tick(); }));
  watchdog.Follow("waits for the report", nullptr, nullptr);
  if (job_.numerics) OPTIMUS_RETURN_IF_ERROR(CompareNumerics());
  OPTIMUS_ASSIGN_OR_RETURN(const std::string code,
                           ranks_.FromFirst([&]() -> absl::StatusOr<std::string> {
                             OPTIMUS_ASSIGN_OR_RETURN(const int exit_code, Finish(result));
                             return std::string(1, static_cast<char>(exit_code));
                           }));
  return code.empty() ? kExitInternal : code.front();
}

absl::StatusOr<std::string> RunOnRanks::Plan() {
  OPTIMUS_ASSIGN_OR_RETURN(const std::optional<step::Plan::PipelineSchedule> pipeline,
                           ParsePipeline(flags_.pipeline));
  OPTIMUS_ASSIGN_OR_RETURN(const Input input, LoadInput(flags_.file, flags_.profile, pipeline));
  OPTIMUS_RETURN_IF_ERROR(CheckWorldSize(input, ranks_.world().size(), arguments_));
  if (kind_ == BackendKind::kEmulated && !input.profile) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags_.file,
                     ": --backend=emulated takes the time of every operation from a profile, and "
                     "a schedule file names none; give --profile=NAME (h100-80gb, ...)"));
  }
  OPTIMUS_RETURN_IF_ERROR(CheckFiles(input));
  PlanningOptions planning = PlanBySimulator(input.experiment.hardware());
  OPTIMUS_ASSIGN_OR_RETURN(planning.scheduler, ParseScheduler(flags_.scheduler));
  if (planning.scheduler && input.experiment.plan().strategy() != step::Plan::OPTIMUS) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--scheduler=", flags_.scheduler, ": ", input.path, " has no plan.strategy: OPTIMUS, and ",
        "others place no encoders in bubbles; leave the flag out"));
  }
  OPTIMUS_ASSIGN_OR_RETURN(planned_, CatchOutOfMemory(flags_.file, "planning", [&] {
                             return PlanStep(input, nullptr, planning);
                           }));
  return EncodeJobs({planned_}, flags_.numerics);
}

absl::Status RunOnRanks::CheckFiles(const Input& input) const {
  std::vector<NamedFile> outputs;
  if (!flags_.timeline.empty()) outputs.push_back({"--timeline", flags_.timeline});
  if (!flags_.schedule.empty()) outputs.push_back({"--schedule", flags_.schedule});
  if (!flags_.trace.empty()) outputs.push_back({"--trace", flags_.trace});
  for (const NamedFile& output : outputs) {
    OPTIMUS_RETURN_IF_ERROR(CheckWritableFile(output.origin, output.path));
  }
  std::vector<NamedFile> inputs = InputFiles(input.path, input.experiment);
  AddProfileFile("--profile", flags_.profile, inputs);
  return CheckOverwrites(inputs, outputs);
}

absl::Status RunOnRanks::Build() {
  ranks_.watchdog().Follow("makes ready for the schedule", nullptr, nullptr);
  executor::BackendOptions options;
  options.bf16 = flags_.bf16;
  options.pin = !flags_.no_pin;
  options.time_scale = flags_.time_scale;
  options.costs = job_.costs.get();
  options.cuda_graph = flags_.cuda_graph;
  options.cuda_checked_steps = flags_.warm_up;
  absl::StatusOr<executor::Backend> backend = executor::MakeBackend(kind_, ranks_.world(), options);
  if (backend.ok()) backend_ = std::move(*backend);
  OPTIMUS_RETURN_IF_ERROR(ranks_.Agree(backend.status()));
  if (job_.numerics) {
    absl::StatusOr<std::unique_ptr<executor::Workload>> workload =
        executor::MakeNumericsWorkload(job_.schedule, ranks_.world().rank(), *job_.numerics);
    if (workload.ok()) workload_ = std::move(*workload);
    OPTIMUS_RETURN_IF_ERROR(ranks_.Agree(workload.status()));
  }
  absl::StatusOr<std::unique_ptr<executor::Runtime>> runtime = executor::Runtime::Create(
      job_.schedule, ranks_.world(), *backend_.device, *backend_.ranks, workload_.get());
  if (runtime.ok()) runtime_ = std::move(*runtime);
  return ranks_.Agree(NameNotReady(flags_.file, runtime.status()));
}

absl::Status RunOnRanks::CompareNumerics() {
  OPTIMUS_ASSIGN_OR_RETURN(
      executor::NumericsReport report,
      executor::CompareWithReference(job_.schedule, ranks_.world(), *workload_, *job_.numerics));
  if (ranks_.first()) numerics_ = NumericsOutcome{std::move(report), flags_.tolerance};
  return absl::OkStatus();
}

absl::StatusOr<int> RunOnRanks::Finish(const executor::RunResult& result) {
  ir::Timeline timeline = executor::MakeTimeline(
      job_.schedule, result.times[executor::MedianStep(result.steps)], executor::ToString(kind_));
  if (flags_.time_scale != 1) timeline = Scaled(std::move(timeline), 1 / flags_.time_scale);
  OPTIMUS_ASSIGN_OR_RETURN(const Report report, MakeReport(result, timeline));
  OPTIMUS_RETURN_IF_ERROR(WriteFiles(timeline));
  OPTIMUS_RETURN_IF_ERROR(WriteStdout(flags_.json ? ToJson({report}) : FullText(report)));
  if (!numerics_ || numerics_->within()) return kExitSuccess;
  SayCheckFailed(ExceededText(*numerics_));
  return kExitCheckFailed;
}

absl::StatusOr<Report> RunOnRanks::MakeReport(const executor::RunResult& result,
                                              const ir::Timeline& timeline) const {
  OPTIMUS_ASSIGN_OR_RETURN(Report report,
                           tools::MakeReport(planned_.step, planned_.costs.get(), timeline));
  report.file = flags_.file;
  LeaveOutEfficiency(report);
  if (report.memory && kind_ != BackendKind::kEmulated) {
    report.memory->capacity = MemoryOfRank(*backend_.device, ranks_.world(), kind_);
  }
  if (planned_.optimus) report.facts.push_back(PlanFact(*planned_.optimus));
  MeasuredReport measured;
  measured.backend = executor::ToString(kind_);
  measured.device = job_.numerics ? kNumericsDevice : backend_.device->Description();
  measured.hosts = ranks_.hosts();
  measured.warm_up = flags_.warm_up;
  measured.steps = result.steps;
  measured.time_scale = flags_.time_scale;
  measured.only_planned = kind_ != BackendKind::kEmulated && planned_.step.experiment.has_plan();
  if (kind_ == BackendKind::kEmulated) {
    measured.emulation = EmulationOf(result.lateness[executor::MedianStep(result.steps)], timeline,
                                     flags_.time_scale);
  }
  report.measured = std::move(measured);
  report.numerics = numerics_;
  report.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  report.peak_memory_mib = PeakMemoryMib();
  return report;
}

// The peak of a profile of other hardware says nothing about this.
void RunOnRanks::LeaveOutEfficiency(Report& report) const {
  if (!report.efficiency || !flags_.profile.empty() || kind_ == BackendKind::kEmulated ||
      !planned_.costs->profile().measured_on().empty()) {
    return;
  }
  report.efficiency.reset();
  report.no_efficiency = absl::StrCat("the profile ", report.profile,
                                      " was not measured on this hardware; give --profile");
}

absl::Status RunOnRanks::WriteFiles(const ir::Timeline& timeline) const {
  StagedFiles files;
  if (!flags_.timeline.empty()) {
    OPTIMUS_ASSIGN_OR_RETURN(std::string content, ir::EncodeTimeline(flags_.timeline, timeline));
    OPTIMUS_RETURN_IF_ERROR(files.Add(flags_.timeline, std::move(content)));
  }
  if (!flags_.schedule.empty()) {
    OPTIMUS_ASSIGN_OR_RETURN(std::string content,
                             ir::EncodeSchedule(flags_.schedule, job_.schedule));
    OPTIMUS_RETURN_IF_ERROR(files.Add(flags_.schedule, std::move(content)));
  }
  if (!flags_.trace.empty()) {
    OPTIMUS_ASSIGN_OR_RETURN(std::string content, traces::ToPerfetto(job_.schedule, timeline));
    OPTIMUS_RETURN_IF_ERROR(files.Add(flags_.trace, std::move(content)));
  }
  return files.Commit();
}

}  // namespace optimus::tools
