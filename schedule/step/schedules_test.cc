// Every pipeline schedule as a step: measured stages against the plain recurrence, models against
// what must not depend on the order.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "schedule/ir/bubbles.h"
#include "schedule/pipeline/order_span.h"
#include "schedule/step/check_schedule.h"
#include "schedule/step/parameters.h"
#include "schedule/step/testing.h"

namespace optimus::step {
namespace {

using ::testing::AllOf;
using testing::Build;
using testing::Costs;
using ::testing::HasSubstr;
using testing::Parse;
using ::testing::StartsWith;

struct Row {
  int stages = 0, micro_batches = 0;
  double f_ms = 0, b_ms = 0, w_ms = 0, comm_ms = 0;
};

// Qi et al., arXiv 2401.10241, Tables 5 and 9: profiled times.
constexpr Row kRows[] = {
    {8, 24, 18.522, 18.086, 9.337, 0.601},  {8, 32, 18.513, 18.086, 9.331, 0.626},
    {8, 64, 18.546, 18.097, 9.321, 0.762},  {16, 48, 11.347, 11.248, 8.132, 0.377},
    {16, 64, 11.307, 11.254, 8.101, 0.379}, {16, 128, 11.325, 11.308, 8.109, 0.378},
};

Experiment Profiled(const Row& row, const std::string& plan, double together_ms = 0) {
  return Parse(absl::StrCat(
      "profiled { forward_ms: ", row.f_ms, " backward_ms: ", row.b_ms, " weight_ms: ", row.w_ms,
      " communication_ms: ", row.comm_ms, " together_ms: ", together_ms, " } ",
      "hardware { profile: 'h100-80gb' gpus: ", row.stages, " } ",
      "batch { global_batch: ", row.micro_batches, " micro_batch: 1 } ",
      "plan { data_parallel: 1 tensor_parallel: 1 no_optimizer: true pipeline_parallel: ",
      row.stages, " schedule: ", plan, " }"));
}

Experiment WithWeightShare(const Row& row, const std::string& plan, double share) {
  Experiment experiment = Profiled(row, plan);
  experiment.mutable_profiled()->set_weight_share(share);
  return experiment;
}

Picoseconds Ms(double ms) { return FromSeconds(ms * 1e-3); }

// What the plain recurrence says of the step's order; `parts` as in BlocksOf.
pipeline::OrderSpan Recurrence(const Row& row, const Step& step, int parts, double together_ms) {
  const pipeline::Order& order = *step.order;
  pipeline::SlotTimes times = pipeline::UniformTimes(
      order, Ms(row.f_ms / parts), Ms(row.b_ms / parts), Ms(row.w_ms / parts), Ms(row.comm_ms));
  if (together_ms > 0) {
    times.together.assign(order.stages,
                          std::vector<Picoseconds>(order.chunks, Ms(together_ms / parts)));
  }
  const auto span = pipeline::EvaluateOrder(order, times);
  EXPECT_TRUE(span.ok()) << span.status();
  return span.ok() ? *span : pipeline::OrderSpan();
}

// The critical path of the Schedule is the recurrence's span, to the picosecond, and on every stage
// busy time is the work of the micro-batches and bubbles are the rest.
void ExpectRecurrence(const Row& row, const std::string& plan, int parts, double together_ms = 0) {
  const auto costs = Costs();
  const Step step = Build(Profiled(row, plan, together_ms), costs);
  ASSERT_TRUE(step.order.has_value());
  const pipeline::OrderSpan span = Recurrence(row, step, parts, together_ms);
  const ir::Timeline timeline = testing::Run(step, costs);
  EXPECT_EQ(timeline.step, span.span) << plan;
  for (std::size_t s = 0; s < step.order->slots.size(); ++s) {
    Picoseconds busy;
    const auto& slots = step.order->slots[s];
    for (std::size_t i = 0; i < slots.size(); ++i) {
      busy += span.slots[s][i].end - span.slots[s][i].start;
      if (slots[i].with_next) ++i;  // both halves have the interval of the pair
    }
    EXPECT_EQ(timeline.entities[s].account.compute, busy) << plan << " stage " << s;
    EXPECT_EQ(timeline.entities[s].account.total(), timeline.step) << plan << " stage " << s;
  }
}

TEST(ProfiledSchedules, AsLongAsTheRecurrenceSays) {
  for (const Row& row : kRows) {
    ExpectRecurrence(row, "ONE_F_ONE_B", 1);
    ExpectRecurrence(row, "INTERLEAVED model_chunks: 3", 3);
    ExpectRecurrence(row, "ZB_H1", 1);
    ExpectRecurrence(row, "ZB_H2", 1);
    ExpectRecurrence(row, "ZB_1P", 1);
    ExpectRecurrence(row, "ZB_2P", 1);
    ExpectRecurrence(row, "ZB_V", 2);
    ExpectRecurrence(row, "DUALPIPE_V", 2);
    ExpectRecurrence(row, "DUALPIPE", 1);
  }
}

// Messages that last longer than a pass queue, on the stage's one stream of a direction.
TEST(ProfiledSchedules, LongMessagesQueueAsInTheRecurrence) {
  for (const double comm_ms : {1.5, 3.0, 7.25}) {
    const Row row{4, 8, 1, 1.25, 2, comm_ms};
    for (const char* one_chunk :
         {"GPIPE", "ONE_F_ONE_B", "ZB_H1", "ZB_H2", "ZB_1P", "ZB_2P", "DUALPIPE"}) {
      ExpectRecurrence(row, one_chunk, 1);
    }
    for (const char* two_chunks : {"INTERLEAVED model_chunks: 2", "ZB_V", "DUALPIPE_V"}) {
      ExpectRecurrence(row, two_chunks, 2);
    }
  }
}

TEST(ProfiledSchedules, AForwardAndABackwardTogether) {
  for (const Row& row : kRows) {
    for (const double share : {0.65, 0.99}) {
      // Microseconds, which the text of an experiment keeps.
      const double together = std::round(share * 1e3 * (row.f_ms + row.b_ms + row.w_ms)) * 1e-3;
      ExpectRecurrence(row, "DUALPIPE", 1, together);
      ExpectRecurrence(row, "DUALPIPE_V", 2, together);
    }
  }
}

// DeepSeek-V3, arXiv 2412.19437, Table 2: the bubble of DualPipe is (PP / 2 - 1)(F&B + B - 3 W). It
// is that of the stages in the middle; where F&B is short, those at the ends, which share less,
// have less.
TEST(ProfiledSchedules, DualPipesBubble) {
  const auto costs = Costs();
  for (const auto& [together, bubble] : {std::pair(3.0, 6.0), {2.0, 3.0}}) {
    const Step step = Build(Profiled({8, 20, 1, 1, 1, 0}, "DUALPIPE", together), costs);
    const ir::Timeline timeline = testing::Run(step, costs);
    Picoseconds most;
    for (const ir::EntityAccount& entity : timeline.entities) {
      most = std::max(most, timeline.step - entity.account.compute);
    }
    EXPECT_EQ(most, Ms(bubble));
    EXPECT_EQ(timeline.step - timeline.entities[3].account.compute, Ms(bubble));
    EXPECT_EQ(timeline.step - timeline.entities[4].account.compute, Ms(bubble));
  }
}

std::string Refusal(const Experiment& experiment) {
  const auto step = BuildStep(experiment, Costs());
  EXPECT_FALSE(step.ok());
  return std::string(step.status().message());
}

TEST(ProfiledSchedules, RefuseWhatTheyDoNotAllow) {
  const Row row{8, 20, 1, 1, 1, 0};
  const auto refused = [&](Row changed, const std::string& plan) {
    return Refusal(Profiled(changed, plan));
  };
  EXPECT_THAT(refused({7, 20, 1, 1, 1, 0}, "DUALPIPE"),
              AllOf(StartsWith("plan.pipeline_parallel: "), HasSubstr("7 is odd")));
  EXPECT_THAT(refused({8, 21, 1, 1, 1, 0}, "DUALPIPE"),
              AllOf(StartsWith("batch.global_batch: "), HasSubstr("21 is odd")));
  EXPECT_THAT(refused({8, 14, 1, 1, 1, 0}, "DUALPIPE"),
              AllOf(StartsWith("batch.global_batch: "), HasSubstr("fewer than 16")));
  EXPECT_THAT(refused({8, 14, 1, 1, 1, 0}, "ZB_H2"), StartsWith("batch.global_batch: "));
  EXPECT_THAT(refused(row, "ZB_H1 model_chunks: 2"),
              AllOf(StartsWith("plan.model_chunks: 2 with ZB_H1"), HasSubstr("set 1")));
  EXPECT_THAT(refused(row, "DUALPIPE_V model_chunks: 4"),
              AllOf(StartsWith("plan.model_chunks: 4 with DUALPIPE_V"), HasSubstr("set 2")));
  EXPECT_THAT(refused(row, "DUALPIPE model_chunks: 1"), HasSubstr("one chunk for each direction"));
  EXPECT_THAT(refused(row, "ZB_V model_chunks: 1"), HasSubstr("as a V; set 2"));
  EXPECT_THAT(refused(row, "ZB_H1 micro_batch_group: 8"), HasSubstr("is set without INTERLEAVED"));
  EXPECT_THAT(refused(row, "ZB_H2 warm_up: BEST"), HasSubstr("BEST without INTERLEAVED"));
  EXPECT_THAT(refused(row, "ZB_H1 schedule_file: 'a.csv'"),
              HasSubstr("plan.schedule_file: is set with ZB_H1; remove it, or set schedule: CUS"));
  EXPECT_THAT(refused(row, "CUSTOM"), HasSubstr("plan.schedule_file: is missing"));
  EXPECT_THAT(refused({8, 20, 1, 1, 0, 0}, "ZB_H1"), HasSubstr("profiled.weight_ms: is 0 with"));
  EXPECT_THAT(Refusal(Profiled(row, "ZB_H1", 2)), HasSubstr("profiled.together_ms: is set with"));
  EXPECT_THAT(
      Refusal(Profiled({8, 20, 1, 1, 1, 0}, "DUALPIPE", 1.9)),
      HasSubstr("profiled.together_ms: is 1.9, less than the longer half alone; give 2 or"));
  EXPECT_THAT(Refusal(WithWeightShare(row, "ZB_H1", 0.5)),
              HasSubstr("profiled.weight_share: is set with ZB_H1"));
  EXPECT_THAT(Refusal(WithWeightShare(row, "ZB_2P", 1.5)),
              HasSubstr("profiled.weight_share: is 1.5; it is a share"));
}

// Whatever an experiment was written for, it can be run under every other schedule.
TEST(UseSchedule, LeavesNothingOfTheOldOne) {
  Experiment written[] = {Profiled({8, 24, 2, 2, 1, 0.1}, "INTERLEAVED model_chunks: 3"),
                          Profiled({8, 24, 2, 2, 1, 0.1}, "DUALPIPE", 4),
                          Profiled({8, 24, 2, 2, 1, 0.1}, "ZB_2P")};
  written[0].mutable_plan()->set_warm_up(Plan::BEST);
  written[2].mutable_profiled()->set_weight_share(0.5);
  for (const Experiment& experiment : written) {
    for (const auto schedule :
         {Plan::GPIPE, Plan::ONE_F_ONE_B, Plan::INTERLEAVED, Plan::ZB_H1, Plan::ZB_H2, Plan::ZB_1P,
          Plan::ZB_2P, Plan::ZB_V, Plan::DUALPIPE, Plan::DUALPIPE_V}) {
      Experiment changed = experiment;
      UseSchedule(schedule, changed);
      const auto step = BuildStep(changed, Costs());
      ASSERT_TRUE(step.ok()) << step.status();
      EXPECT_EQ(step->experiment.plan().schedule(), schedule);
    }
  }
  Experiment kept = written[0];
  UseSchedule(Plan::INTERLEAVED, kept);
  EXPECT_EQ(kept.plan().model_chunks(), 3);
  EXPECT_EQ(kept.plan().warm_up(), Plan::BEST);
}

// Models.

std::string Llm(const std::string& plan) {
  return absl::StrCat(R"(name: "small" llm: "gpt-11b" hardware { profile: "h100-80gb" gpus: 64 }
    batch { global_batch: 64 micro_batch: 1 sequence_length: 2048 }
    plan { data_parallel: 2 pipeline_parallel: 4 tensor_parallel: 8 layout: EQUAL_LAYERS )",
                      plan, " }");
}

std::string Schedule(const std::string& schedule) { return Llm("schedule: " + schedule); }

// How often each kernel and collective runs on all stages together.
std::map<std::string, int> WorkOf(const Step& step) {
  std::map<std::string, int> work;
  for (const ir::Program& program : step.schedule.programs) {
    for (const ir::Operation& op : program.operations) {
      if (op.tag.micro_batch < 0) continue;
      if (op.kind == ir::OperationKind::kKernel) ++work[step.schedule.kernels[op.work].name];
      if (op.kind != ir::OperationKind::kCollective) continue;
      ++work[step.schedule.collectives[op.work].work.name];
    }
  }
  return work;
}

TEST(Schedules, DoTheSameWork) {
  for (const char* recompute : {"", " recompute: RECOMPUTE_FULL", " recompute: RECOMPUTE_SELECTIVE",
                                " no_sequence_parallel: true"}) {
    const auto work = WorkOf(Build(Schedule(absl::StrCat("ONE_F_ONE_B", recompute))));
    for (const char* schedule :
         {"ZB_H1", "ZB_H2", "ZB_1P", "ZB_2P", "ZB_V", "DUALPIPE_V", "DUALPIPE"}) {
      EXPECT_EQ(WorkOf(Build(Schedule(absl::StrCat(schedule, recompute)))), work)
          << schedule << recompute;
    }
  }
}

// On every GPU all time has a cause, whatever the order.
TEST(Schedules, EveryIdlePicosecondHasACause) {
  const auto costs = Costs();
  for (const char* schedule : {"ONE_F_ONE_B", "ZB_H1", "ZB_H2", "DUALPIPE_V", "DUALPIPE",
                               "DUALPIPE dp_communication: DP_OVERLAPPED"}) {
    const Step step = Build(Schedule(schedule));
    const ir::Timeline timeline = testing::Run(step, costs);
    std::size_t span = 0;
    for (std::size_t s = 0; s < step.schedule.programs.size(); ++s) {
      const ir::Program& program = step.schedule.programs[s];
      std::vector<Picoseconds> starts, ends;
      for (std::size_t i = 0; i < program.operations.size(); ++i, ++span) {
        starts.push_back(timeline.spans[span].start);
        ends.push_back(timeline.spans[span].end);
      }
      const ir::RankAccount account =
          ir::AccountFromSpans(step.schedule, program, starts, ends, timeline.step);
      EXPECT_EQ(timeline.entities[s].account, account) << schedule << " stage " << s;
      EXPECT_EQ(account.total(), timeline.step) << schedule << " stage " << s;
    }
  }
}

// Without tensor parallelism. With it 1F1B has weight gradients to run under the collectives of its
// data gradients, which zero bubble puts off.
TEST(Schedules, ZeroBubbleIsFasterThanOneForwardOneBackward) {
  const auto costs = Costs();
  const auto time = [&](const char* schedule) {
    Experiment experiment = Parse(Schedule(schedule));
    experiment.mutable_hardware()->set_gpus(8);
    experiment.mutable_plan()->set_tensor_parallel(1);
    return testing::StepTime(Build(experiment, costs), costs);
  };
  const Picoseconds one_f_one_b = time("ONE_F_ONE_B");
  EXPECT_LT(time("ZB_H1"), one_f_one_b);
  EXPECT_LT(time("ZB_H2"), time("ZB_H1"));
  // Made for these times, and never worse than a handcrafted one.
  EXPECT_LE(time("ZB_1P"), time("ZB_H1"));
  EXPECT_LE(time("ZB_2P"), time("ZB_H2"));
  EXPECT_LT(time("ZB_V"), one_f_one_b);
  EXPECT_LT(time("DUALPIPE_V"), one_f_one_b);
}

// Gradients are sent when the data gradient is there: the next stage does not wait for weights.
TEST(Schedules, GradientsAreSentBeforeTheWeightGradients) {
  const Step step = Build(Schedule("ZB_H1"));
  int sends = 0;
  for (const ir::Program& program : step.schedule.programs) {
    for (const ir::Operation& op : program.operations) {
      if (op.stream != ir::Stream::kBackwardSend) continue;
      ++sends;
      for (const std::uint32_t before : program.DependenciesOf(op)) {
        EXPECT_EQ(program.operations[before].tag.phase, Phase::kBackward);
        EXPECT_EQ(program.operations[before].tag.micro_batch, op.tag.micro_batch);
      }
    }
  }
  EXPECT_EQ(sends, 3 * 32);
}

// The reduction of a chunk waits for its last weight gradient, and nothing of the chunk comes after
// it.
TEST(Schedules, GradientsAreReducedAfterTheLastWeightGradient) {
  for (const char* schedule : {"ZB_H1", "ZB_H2", "ZB_1P", "ZB_V", "DUALPIPE_V", "DUALPIPE"}) {
    const Step step = Build(Schedule(absl::StrCat(schedule, " dp_communication: DP_OVERLAPPED")));
    for (const ir::Program& program : step.schedule.programs) {
      int reductions = 0;
      for (std::size_t i = 0; i < program.operations.size(); ++i) {
        const ir::Operation& op = program.operations[i];
        if (op.stream != ir::Stream::kDataParallel || op.tag.chunk < 0) continue;
        if (op.tag.phase != Phase::kGradientSync) continue;
        ++reductions;
        ASSERT_EQ(op.dependency_count, 1U);
        const std::uint32_t last = program.DependenciesOf(op)[0];
        EXPECT_EQ(program.operations[last].tag.chunk, op.tag.chunk) << schedule;
        const bool later = std::any_of(program.operations.begin() + static_cast<std::ptrdiff_t>(i),
                                       program.operations.end(), [&](const ir::Operation& other) {
                                         return other.tag.micro_batch >= 0 &&
                                                other.tag.chunk == op.tag.chunk &&
                                                other.kind == ir::OperationKind::kKernel;
                                       });
        EXPECT_FALSE(later) << schedule;
      }
      EXPECT_EQ(reductions, step.order->chunks) << schedule;
    }
  }
}

// The turn of a V: no message between the chunks of the last stage, and none into the first one's
// end; every other boundary has one, to the neighbour of the placement.
TEST(Schedules, MessagesFollowThePlacement) {
  const Step step = Build(Schedule("DUALPIPE_V"));
  const auto peers = [&](int stage, ir::Stream stream, int chunk) {
    std::set<int> found;
    for (const ir::Operation& op : step.schedule.programs[stage].operations) {
      if (op.stream == stream && op.tag.chunk == chunk) found.insert(op.peer_stage);
    }
    return found;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(peers(1, ir::Stream::kForwardSend, 0), ElementsAre(2));
  EXPECT_THAT(peers(1, ir::Stream::kForwardSend, 1), ElementsAre(0));
  EXPECT_THAT(peers(1, ir::Stream::kBackwardSend, 1), ElementsAre(2));
  EXPECT_THAT(peers(1, ir::Stream::kBackwardSend, 0), ElementsAre(0));
  EXPECT_THAT(peers(3, ir::Stream::kForwardSend, 0), ElementsAre());
  EXPECT_THAT(peers(3, ir::Stream::kForwardReceive, 1), ElementsAre());
  EXPECT_THAT(peers(3, ir::Stream::kBackwardReceive, 0), ElementsAre());
  EXPECT_THAT(peers(0, ir::Stream::kForwardSend, 1), ElementsAre());
  EXPECT_THAT(step.contents, ::testing::SizeIs(8));
  EXPECT_EQ(step.contents[4].stage, 3);
  EXPECT_EQ(step.contents[7].stage, 0);
  EXPECT_THAT(step.contents[7].layers, HasSubstr("head"));
}

// A forward and a backward that share a stage take less than one after the other: the collectives
// of one are hidden. DualPipeV's order without sharing is the twin.
TEST(Schedules, SharingAStageHidesCollectives) {
  const auto costs = Costs();
  const Step shared = Build(Schedule("DUALPIPE_V no_optimizer: true"));
  EXPECT_THAT(shared.notes, ::testing::Contains(HasSubstr("issued in turns")));
  ir::Timeline timeline = testing::Run(shared, costs);
  const auto waiting_for_tensor_parallel = [](const ir::Timeline& run) {
    Picoseconds sum;
    for (const ir::EntityAccount& entity : run.entities) {
      sum += entity.account.bubbles[static_cast<std::size_t>(ir::BubbleClass::kTp)];
    }
    return sum;
  };
  const Step plain = Build(Schedule("ZB_H1 no_optimizer: true"));
  EXPECT_LT(2 * waiting_for_tensor_parallel(timeline),
            waiting_for_tensor_parallel(testing::Run(plain, costs)));
}

// On the first stage, which holds the most of 1F1B. With full recomputation what was recomputed
// stays for the weight gradients, and under tensor parallelism so do gathered gradients: then ZB-H1
// is not within 1F1B's memory.
TEST(Schedules, MemoryOfWeightGradientsThatWait) {
  const auto first = [](const std::string& plan, int tensor_parallel = 1) {
    Experiment experiment = Parse(Schedule(plan));
    experiment.mutable_hardware()->set_gpus(8 * tensor_parallel);
    experiment.mutable_plan()->set_tensor_parallel(tensor_parallel);
    return Build(experiment, Costs()).memory.front().activations;
  };
  EXPECT_LE(first("ZB_H1"), first("ONE_F_ONE_B"));
  EXPECT_GT(first("ZB_H2"), first("ONE_F_ONE_B"));
  EXPECT_GT(first("ZB_H1", 8), first("ONE_F_ONE_B", 8));
  EXPECT_GT(first("ZB_H1 recompute: RECOMPUTE_FULL"),
            first("ONE_F_ONE_B recompute: RECOMPUTE_FULL"));
}

}  // namespace
}  // namespace optimus::step
