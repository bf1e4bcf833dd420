// Random small models with encoders in the bubbles of their LLM, end to end: experiment, plan,
// bubble schedule, emitted Schedule, timeline. The invariants that need the Schedule: 13 (the LLM's
// own operations are those of the LLM alone), 22 (messages).
// RC_PARAMS (the guide of rapidcheck) overrides the seed and the number of cases.

#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "rapidcheck/gtest.h"
#include "schedule/bubble/scheduler.h"
#include "schedule/bubble/verify.h"
#include "schedule/colocate/optimus.h"
#include "schedule/colocate/planned.h"
#include "schedule/colocate/search.h"
#include "schedule/ir/critical_path.h"
#include "schedule/ir/validate.h"
#include "schedule/step/check_strategy.h"
#include "schedule/step/testing.h"
#include "sim/simgrid_runner.h"
#include "tests/random_models.h"

namespace optimus {
namespace {

using testing::Any;
using testing::Require;
using testing::Take;
using testing::WriteModel;

// The same cases in every run; rapidcheck reads this at the first property.
const bool kCases = setenv("RC_PARAMS", "seed=20240805 max_success=300", /*overwrite=*/0) == 0;

std::string AnyEncoder(int index, int micro_batches) {
  const int width = 64 * *rc::gen::inRange(1, 33).as("encoder width / 64");
  const int layers = *rc::gen::inRange(1, 7).as("encoder layers");
  const std::string path = WriteModel(absl::StrCat("vit-", index), width, layers, false);
  const int sequences = *rc::gen::element(1, 2, 4).as("sequences a sample");
  std::string text =
      absl::StrCat("encoders { model: \"", path, "\" sequences_per_sample: ", sequences,
                   " sequence_length: 512 sequences_per_slice: ",
                   *rc::gen::element(1, sequences).as("sequences a slice"));
  if (*rc::gen::weightedElement<bool>({{4, false}, {1, true}}).as("frozen")) {
    absl::StrAppend(&text, " frozen: true");
  }
  for (int i = 1; i < micro_batches; ++i) {  // the first one has input
    if (*rc::gen::weightedElement<bool>({{9, false}, {1, true}}).as("without input")) {
      absl::StrAppend(&text, " micro_batches_without_input: ", i);
    }
  }
  return text + " }\n";
}

step::Experiment AnyExperiment() {
  const int pp = *rc::gen::element(1, 2, 4).as("pipeline parallelism");
  const int tp = *rc::gen::element(1, 2, 4).as("tensor parallelism");
  const int dp = *rc::gen::element(1, 2).as("data parallelism");
  const int chunks = pp == 1 ? 1 : *rc::gen::element(1, 2).as("model chunks");
  const int micro_batches =
      chunks == 1 ? *rc::gen::inRange(1, 7).as("micro-batches")
                  : pp * *rc::gen::inRange(1, 3).as("micro-batches / pipeline parallelism");
  const int width = 128 * *rc::gen::inRange(1, 17).as("LLM width / 128");
  const int layers = pp * chunks * *rc::gen::inRange(1, 3).as("layers a chunk");
  const std::string recompute =
      Any({"RECOMPUTE_FULL", "RECOMPUTE_NONE", "RECOMPUTE_SELECTIVE"}, "recompute");
  const std::string communication = Any({"DP_EXPOSED", "DP_OVERLAPPED"}, "LLM data parallel");
  const std::string scheduler = Any({"PAPER", "LIST"}, "scheduler");
  const std::string encoder_communication =
      Any({"ENCODER_DP_LAYERWISE", "ENCODER_DP_EXPOSED", "ENCODER_DP_NONE"}, "encoder's");
  // Only the interleaved schedule has a choice of warm-ups.
  const std::string schedule =
      chunks == 1 ? "schedule: ONE_F_ONE_B"
                  : "schedule: INTERLEAVED warm_up: " + Any({"MEGATRON", "DEFERRED", "BEST"}, "");
  std::string text = absl::StrCat(
      "name: \"random\" llm: \"", WriteModel("llm", width, layers, true),
      "\" hardware { profile: \"h100-80gb\" gpus: ", dp * pp * tp,
      " no_interference: true } batch { global_batch: ", dp * micro_batches,
      " micro_batch: 1 sequence_length: 512 } plan { strategy: OPTIMUS data_parallel: ", dp,
      " pipeline_parallel: ", pp, " tensor_parallel: ", tp, " model_chunks: ", chunks, " ",
      schedule);
  absl::StrAppend(&text, " recompute: ", recompute, " dp_communication: ", communication,
                  " optimus { scheduler: ", scheduler,
                  " encoder_data_parallel: ", encoder_communication, " } }\n");
  const int encoders = *rc::gen::inRange(1, 3).as("encoders");
  for (int k = 0; k < encoders; ++k) text += AnyEncoder(k, micro_batches);
  return step::testing::Parse(text);
}

const hw::ProfileCostModel& Costs() {
  static const auto* costs = new hw::ProfileCostModel(step::testing::Costs());
  return *costs;
}

// --- invariant 13 --------------------------------------------------------------------------------

// What an operation does, wherever its tables put it.
std::string WorkOf(const ir::Schedule& schedule, const ir::Operation& op) {
  const std::string where = absl::StrCat(ToString(op.kind), " ", ToString(op.stream), " layer ",
                                         op.tag.layer, " chunk ", op.tag.chunk, " micro-batch ",
                                         op.tag.micro_batch, " ", ToString(op.tag.phase), " ");
  if (op.kind == ir::OperationKind::kKernel) {
    const Kernel& kernel = schedule.kernels[op.work];
    return absl::StrCat(where, kernel.name, " ", Costs().KernelTime(kernel).value());
  }
  if (op.kind == ir::OperationKind::kCollective) {
    const ir::Collective& collective = schedule.collectives[op.work];
    return absl::StrCat(where, collective.work.name, " ", collective.work.bytes.value(), " ",
                        schedule.groups[collective.group].name);
  }
  return absl::StrCat(where, "to or from ", op.peer_stage, " ",
                      schedule.transfers[op.work].bytes.value());
}

// The LLM's operations of one program, stream by stream in their order, without the optimizer step
// that it shares with the encoders.
std::vector<std::vector<std::string>> LlmOperations(const ir::Schedule& schedule,
                                                    const ir::Program& program) {
  std::vector<std::vector<std::string>> streams(ir::kStreamCount);
  for (const ir::Operation& op : program.operations) {
    const bool shared = op.tag.module == ir::kNoModule || op.tag.phase == Phase::kOptimizer;
    if (op.tag.module > ir::kLlmModule || shared) continue;
    streams[static_cast<std::size_t>(op.stream)].push_back(WorkOf(schedule, op));
  }
  return streams;
}

void RequireSameLlm(const ir::Schedule& with, const ir::Schedule& alone) {
  RC_ASSERT(alone.lanes == 1);
  RC_ASSERT(with.world == alone.world);
  RC_ASSERT(with.programs.size() == alone.programs.size() * static_cast<std::size_t>(with.lanes));
  for (std::size_t i = 0; i < with.programs.size(); ++i) {
    const ir::Program& ours = with.programs[i];
    RC_ASSERT(LlmOperations(with, ours) == LlmOperations(alone, alone.programs[ours.stage]));
  }
}

// --- invariant 22 --------------------------------------------------------------------------------

// Encoder messages by their number: each is sent once and received once, from lane to lane and back
// as the two ends say.
void RequirePairs(const ir::Schedule& schedule) {
  struct End {
    int count = 0;
    std::int32_t stage = 0, lane = 0, peer_stage = 0, peer_lane = 0;
  };
  std::map<std::int32_t, End> sends;
  std::map<std::int32_t, End> receives;
  for (const ir::Program& program : schedule.programs) {
    for (const ir::Operation& op : program.operations) {
      if (op.kind != ir::OperationKind::kSend && op.kind != ir::OperationKind::kReceive) continue;
      End& end = (op.kind == ir::OperationKind::kSend ? sends : receives)[op.message];
      const std::int32_t peer_lane = op.peer_lane < 0 ? program.lane : op.peer_lane;
      end = {end.count + 1, program.stage, program.lane, op.peer_stage, peer_lane};
    }
  }
  RC_ASSERT(sends.size() == receives.size());
  for (const auto& [message, send] : sends) {
    const auto found = receives.find(message);
    RC_ASSERT(found != receives.end());
    const End& receive = found->second;
    // Messages of the LLM are the same on all lanes.
    RC_ASSERT(send.count == receive.count);
    RC_ASSERT(send.count == 1 || send.count == schedule.lanes);
    RC_ASSERT(send.stage == receive.peer_stage && receive.stage == send.peer_stage);
    if (send.count == 1) {
      RC_ASSERT(send.lane == receive.peer_lane && receive.lane == send.peer_lane);
    }
  }
}

// --- properties ----------------------------------------------------------------------------------

// The bubble scheduler's result for a real problem, checked against that problem.
RC_GTEST_PROP(RandomModel, BestPlanPassesTheVerifier, ()) {
  step::Experiment experiment = AnyExperiment();
  const step::Stack stack = Take(colocate::EncoderStack(experiment));
  const auto llms = Take(colocate::BuildLlmSteps(experiment, Costs()));
  const colocate::EncoderContext context{experiment, stack, Costs(),
                                         experiment.plan().optimus().scheduler()};
  const auto search = Take(colocate::SearchPlans(context, llms, {}));
  const colocate::BestPlan& found = search.best.front();
  const colocate::LlmStep& llm = llms[found.llm];
  ir::Schedule tables = llm.step.schedule;
  bubble::Problem problem;
  problem.llm = llm.llm;
  problem.tensor_parallel = experiment.plan().tensor_parallel();
  Require(colocate::SetEncoders(context, llm, found.encoders, tables, problem));
  Require(bubble::Verify(problem, found.result));
  if (context.scheduler == step::Optimus::PAPER) {
    Require(bubble::VerifyPaperRules(problem, found.result));
  }
  // The ranked numbers are the result's.
  const colocate::RankedPlan& best = search.plan.ranked.front();
  RC_ASSERT(best.predicted == found.result.latency);
  RC_ASSERT(best.bounds.work <= best.predicted && best.bounds.fluid <= best.predicted);
  RC_ASSERT(best.predicted <= best.coarse);
  for (std::size_t i = 1; i < search.plan.ranked.size(); ++i) {
    RC_ASSERT(search.plan.ranked[i - 1].predicted <= search.plan.ranked[i].predicted);
  }
}

RC_GTEST_PROP(RandomModel, ItsScheduleIsValidAndRunsAsPredicted, ()) {
  const step::Experiment experiment = AnyExperiment();
  const auto built = Take(colocate::BuildOptimusStep(experiment, Costs(), {}));
  const ir::Schedule& schedule = built.step.schedule;
  Require(ir::Validate(schedule));
  RequirePairs(schedule);
  const colocate::RankedPlan& best = built.plan.ranked.front();
  const double predicted = ToSeconds(best.predicted);
  const double run = ToSeconds(Take(ir::CriticalPathRunner(Costs()).Run(schedule)).step);
  RC_LOG() << "predicted " << predicted << " s, critical path " << run << " s\n";
  // Operations keep their order, not their times: what was held up by the rigid LLM of the bubble
  // scheduler may run earlier, and then the step is shorter than predicted. Messages of one stream
  // wait for each other, which the scheduler does not know: it may be a little longer.
  RC_ASSERT(run <= 1.005 * predicted);
  RC_ASSERT(run >= 0.97 * predicted);
  RC_CLASSIFY(run < 0.995 * predicted, "more than 0.5 % below");
}

RC_GTEST_PROP(Invariant13, TheLlmDoesWhatItDoesAlone, ()) {
  const step::Experiment experiment = AnyExperiment();
  const auto built = Take(colocate::BuildOptimusStep(experiment, Costs(), {}));
  step::Experiment alone = step::LlmAlone(experiment);
  alone.mutable_plan()->set_warm_up(built.plan.ranked.front().warm_up);
  RequireSameLlm(built.step.schedule, Take(step::BuildStep(alone, Costs())).schedule);
}

RC_GTEST_PROP(RandomModel, SimulationWithoutContentionIsTheCriticalPath, ()) {
  const step::Experiment experiment = AnyExperiment();
  const auto built = Take(colocate::BuildOptimusStep(experiment, Costs(), {}));
  const Picoseconds alone = Take(ir::CriticalPathRunner(Costs()).Run(built.step.schedule)).step;
  sim::Options options;
  options.interference = false;
  sim::SimGridRunner runner(Costs(), options);
  const Picoseconds simulated = Take(runner.Run(built.step.schedule)).step;
  RC_CLASSIFY(runner.stats().shared_flows > 0, "links are shared");
  RC_LOG() << "critical path " << alone.value() << " ps, simulated " << simulated.value()
           << " ps, shared flows " << runner.stats().shared_flows << "\n";
  RC_ASSERT(simulated >= alone);
  if (runner.stats().shared_flows == 0) RC_ASSERT(simulated == alone);
}

}  // namespace
}  // namespace optimus
