// Parameters that two stages hold: the two copies of every layer under DualPipe, and the table of
// tied embeddings.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "schedule/ir/critical_path.h"
#include "schedule/step/data_parallel.h"
#include "schedule/step/parameters.h"
#include "schedule/step/testing.h"

namespace optimus::step {
namespace {

using testing::Build;
using ::testing::Contains;
using testing::Costs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Parse;
using ::testing::SizeIs;

Picoseconds Idle(const ir::RankAccount& account, ir::BubbleClass cause) {
  return account.bubbles[static_cast<std::size_t>(cause)];
}

// What a stage sends for the step as a whole, in order.
struct Sync {
  std::string name;
  std::int64_t bytes = 0;
  ir::Group group;
};

std::vector<Sync> SyncsOf(const Step& step, int stage) {
  std::vector<Sync> syncs;
  for (const ir::Operation& op : step.schedule.programs[stage].operations) {
    if (op.stream != ir::Stream::kDataParallel) continue;
    const ir::Collective& collective = step.schedule.collectives[op.work];
    syncs.push_back({collective.work.name, collective.work.bytes.value(),
                     step.schedule.groups[collective.group]});
  }
  return syncs;
}

std::vector<std::string> NamesOf(const Step& step, int stage) {
  std::vector<std::string> names;
  for (const Sync& sync : SyncsOf(step, stage)) names.push_back(sync.name);
  return names;
}

// llama-70b on 4 stages of 20 layers, or gpt-11b, whose embeddings are tied.
std::string Llm(const std::string& plan, const char* model, int data_parallel, int stages) {
  return absl::StrCat(
      "name: 'two' llm: '", model,
      "' hardware { profile: 'h100-80gb' gpus: ", 8 * data_parallel * stages,
      " } batch { global_batch: ", 16 * data_parallel,
      " micro_batch: 1 sequence_length: 2048 } plan { data_parallel: ", data_parallel,
      " pipeline_parallel: ", stages, " tensor_parallel: 8 layout: EQUAL_LAYERS ", plan, " }");
}
std::string DualPipe(const std::string& plan, int data_parallel = 2) {
  return Llm("schedule: DUALPIPE " + plan, "llama-70b", data_parallel, 4);
}

// Trained parameters of one GPU, by virtual stage.
std::vector<std::int64_t> TrainedOf(const Step& step) {
  const auto stack = BuildStack(step.experiment);
  EXPECT_TRUE(stack.ok()) << stack.status();
  std::vector<std::int64_t> trained;
  for (const ChunkParameters& c :
       CountChunkParameters(*stack, {0, 21, 41, 61, 82}, {.stages = 4})) {
    trained.push_back(c.trained);
  }
  return trained;
}

TEST(TwoCopies, AreReducedOverTheDataParallelRanksOfBothStages) {
  const Step step = Build(DualPipe(""));
  EXPECT_TRUE(step.schedule.modules[0].both_directions);
  const std::vector<std::int64_t> trained = TrainedOf(step);
  for (int s = 0; s < 4; ++s) {
    const std::int64_t held = trained[s] + trained[3 - s];
    const std::vector<Sync> syncs = SyncsOf(step, s);
    ASSERT_THAT(NamesOf(step, s),
                ElementsAre("parameter_all_gather", "gradient_reduce_scatter", "grad_norm"));
    EXPECT_EQ(syncs[0].bytes, 2 * held);
    EXPECT_EQ(syncs[1].bytes, 4 * held);
    for (const int i : {0, 1}) {
      EXPECT_TRUE(syncs[i].group.over_dp);
      EXPECT_THAT(syncs[i].group.pp_pair, ElementsAre(std::min(s, 3 - s), std::max(s, 3 - s)));
      EXPECT_EQ(ir::ShapeOf(step.schedule, syncs[i].group).ranks, 2 * 2);
    }
  }
}

TEST(TwoCopies, KeepOneOptimizerStateOfBoth) {
  for (const int data_parallel : {1, 2}) {
    const Step step = Build(DualPipe("", data_parallel));
    const std::vector<std::int64_t> trained = TrainedOf(step);
    for (int s = 0; s < 4; ++s) {
      const std::int64_t held = trained[s] + trained[3 - s];
      const std::int64_t ranks = std::int64_t{2} * data_parallel;
      EXPECT_EQ(step.memory[s].parameters, Bytes(2 * held));
      EXPECT_EQ(step.memory[s].gradients, Bytes(4 * held));
      EXPECT_EQ(step.memory[s].optimizer_state, Bytes((12 * held + ranks - 1) / ranks));
    }
  }
  const Step whole = Build(DualPipe("no_distributed_optimizer: true"));
  const std::vector<std::int64_t> trained = TrainedOf(whole);
  EXPECT_EQ(whole.memory[1].optimizer_state, Bytes(12 * (trained[1] + trained[2])));
  EXPECT_THAT(NamesOf(whole, 1), ElementsAre("gradient_all_reduce", "grad_norm"));
}

// Both stages of a pair come to the same layers in the same order, or Build's validation fails.
TEST(TwoCopies, AreReducedChunkByChunkAndInBuckets) {
  for (const int data_parallel : {1, 2}) {
    for (const char* buckets : {"", " dp_bucket_parameters: 200000000"}) {
      const Step step =
          Build(DualPipe(absl::StrCat("dp_communication: DP_OVERLAPPED", buckets), data_parallel));
      for (int s = 0; s < 4; ++s) {
        std::int64_t gathered = 0, reduced = 0;
        for (const Sync& sync : SyncsOf(step, s)) {
          if (sync.name == "parameter_all_gather") gathered += sync.bytes;
          if (sync.name == "gradient_reduce_scatter") reduced += sync.bytes;
        }
        const std::vector<std::int64_t> trained = TrainedOf(step);
        EXPECT_EQ(gathered, 2 * (trained[s] + trained[3 - s])) << s << buckets;
        EXPECT_EQ(reduced, 2 * gathered) << s << buckets;
      }
    }
  }
}

// A stage's own time for its two collectives and the optimizer is what the step is longer by.
TEST(TwoCopies, CostWhatTheirCollectivesCost) {
  const auto costs = Costs();
  const Step with = Build(DualPipe(""));
  const Step without = Build(DualPipe("no_optimizer: true"));
  const auto time_of = [&](const Sync& sync, CollectiveKind kind) {
    const CollectiveWork work{kind, sync.name, Bytes(sync.bytes)};
    return UncontendedTime(costs,
                           costs.CollectiveCost(work, ir::ShapeOf(with.schedule, sync.group)));
  };
  // The ends hold the most: embedding and head. They begin first and end last.
  const std::vector<Sync> syncs = SyncsOf(with, 0);
  const std::vector<std::int64_t> trained = TrainedOf(with);
  const Kernel optimizer = OptimizerKernel(with.experiment.plan(), costs, trained[0] + trained[3]);
  EXPECT_EQ(testing::StepTime(with, costs),
            testing::StepTime(without, costs) + time_of(syncs[0], CollectiveKind::kAllGather) +
                time_of(syncs[1], CollectiveKind::kReduceScatter) +
                time_of(syncs[2], CollectiveKind::kAllReduce) + costs.KernelTime(optimizer));
  const ir::Timeline timeline = testing::Run(with, costs);
  for (const ir::EntityAccount& entity : timeline.entities) {
    EXPECT_GT(Idle(entity.account, ir::BubbleClass::kDpReduceScatter), Picoseconds(0));
    EXPECT_GT(Idle(entity.account, ir::BubbleClass::kDpAllGather), Picoseconds(0));
  }
}

// Tied embeddings.

std::string Tied(const std::string& plan, int data_parallel = 2, int stages = 4) {
  return Llm(plan, "gpt-11b", data_parallel, stages);
}

constexpr std::int64_t kTableBytes = std::int64_t{4} * 51200 / 8 * 3072;  // gpt-11b under TP 8

TEST(TiedEmbeddings, AreSummedBetweenTheirStagesBeforeTheNorm) {
  for (const char* plan : {"schedule: ONE_F_ONE_B", "schedule: ZB_H1",
                           "schedule: ONE_F_ONE_B dp_communication: DP_OVERLAPPED",
                           "schedule: INTERLEAVED model_chunks: 2",
                           "schedule: ONE_F_ONE_B no_distributed_optimizer: true"}) {
    const Step step = Build(Tied(plan));
    for (const int stage : {0, 3}) {
      const std::vector<Sync> syncs = SyncsOf(step, stage);
      ASSERT_GE(syncs.size(), 3U) << plan;
      const Sync& sum = syncs[syncs.size() - 2];
      EXPECT_EQ(sum.name, "tied_embedding_all_reduce") << plan;
      EXPECT_EQ(sum.bytes, kTableBytes) << plan;
      EXPECT_THAT(sum.group.pp_pair, ElementsAre(0, 3));
      EXPECT_FALSE(sum.group.over_dp || sum.group.over_tp);
      EXPECT_EQ(syncs.back().name, "grad_norm");
    }
    for (const int stage : {1, 2}) {
      EXPECT_THAT(NamesOf(step, stage), Not(Contains(std::string("tied_embedding_all_reduce"))));
    }
    for (const std::string& note : step.notes) EXPECT_THAT(note, Not(HasSubstr("tied")));
  }
}

// Encoder layers fill the first stages, so that the embedding is on a later one.
TEST(TiedEmbeddings, AreWhereTheEmbeddingIs) {
  Experiment experiment = Parse(testing::SmallModel());
  experiment.mutable_plan()->set_pipeline_parallel(4);
  experiment.mutable_hardware()->set_gpus(32);
  experiment.mutable_hardware()->set_cluster_gpus(32);
  const Step step = Build(experiment, Costs());
  EXPECT_THAT(NamesOf(step, 0), ElementsAre("grad_norm"));
  for (const int stage : {1, 3}) {
    ASSERT_THAT(NamesOf(step, stage), ElementsAre("tied_embedding_all_reduce", "grad_norm"));
    EXPECT_THAT(SyncsOf(step, stage)[0].group.pp_pair, ElementsAre(1, 3));
  }
  EXPECT_THAT(NamesOf(step, 2), ElementsAre("grad_norm"));
}

// Of two copies either has its own table: the embedding's stages are 1 and 2, the head's 0 and 3.
TEST(TiedEmbeddings, OfTwoCopiesAreSummedTwice) {
  Experiment experiment = Parse(testing::SmallModel());
  experiment.mutable_batch()->set_global_batch(32);
  experiment.mutable_plan()->set_pipeline_parallel(4);
  experiment.mutable_plan()->set_schedule(Plan::DUALPIPE);
  experiment.mutable_plan()->set_model_chunks(2);
  experiment.mutable_hardware()->set_gpus(32);
  experiment.mutable_hardware()->set_cluster_gpus(32);
  const Step step = Build(experiment, Costs());
  for (int stage = 0; stage < 4; ++stage) {
    const std::vector<Sync> syncs = SyncsOf(step, stage);
    ASSERT_THAT(NamesOf(step, stage), ElementsAre("parameter_all_gather", "gradient_reduce_scatter",
                                                  "tied_embedding_all_reduce", "grad_norm"));
    const int first = stage < 2 ? 0 : 2;
    EXPECT_THAT(syncs[2].group.pp_pair, ElementsAre(first, first + 1));
    EXPECT_EQ(syncs[2].bytes, kTableBytes);
  }
}

TEST(TiedEmbeddings, NeedNoSumOnOneStage) {
  const auto sums = [](const Step& step) {
    std::vector<std::string> found;
    for (const ir::Collective& c : step.schedule.collectives) {
      if (c.work.name == "tied_embedding_all_reduce") found.push_back(c.work.name);
    }
    return found;
  };
  EXPECT_THAT(sums(Build(Tied("schedule: ONE_F_ONE_B"))), SizeIs(1));
  EXPECT_THAT(sums(Build(Tied("schedule: ONE_F_ONE_B", 2, 1))), IsEmpty());
  EXPECT_THAT(sums(Build(Tied("schedule: DUALPIPE_V"))), IsEmpty());
  EXPECT_THAT(sums(Build(Tied("schedule: ZB_V"))), IsEmpty());
  EXPECT_THAT(sums(Build(Tied("schedule: DUALPIPE"))), IsEmpty());
  EXPECT_THAT(sums(Build(Tied("schedule: ONE_F_ONE_B no_optimizer: true"))), IsEmpty());
  EXPECT_THAT(sums(Build(Llm("schedule: ONE_F_ONE_B", "llama-70b", 2, 4))), IsEmpty());
}

// The head of a V is on the first stage, beside the embedding: a tied table needs no copy.
TEST(TiedEmbeddings, NeedNoCopyOnAV) {
  const auto stack = BuildStack(Parse(Llm("schedule: DUALPIPE_V", "llama-70b", 2, 4)));
  ASSERT_TRUE(stack.ok()) << stack.status();
  Stack tied = *stack;
  tied.modules[0].config.set_tied_embeddings(true);
  const auto items = static_cast<int>(stack->items.size());
  const ItemRanges ranges = {0, items / 4, items / 2, items - 3, items};
  EXPECT_TRUE(HasTiedCopy(tied, ranges, {.stages = 2, .chunks = 2}));
  EXPECT_FALSE(HasTiedCopy(tied, ranges, {pipeline::Placement::kV, 2, 2}));
}

// 1F1B: the first stage ends last, so that the sum and nothing else makes the step longer. The last
// stage waits for it as it does for the norm.
TEST(TiedEmbeddings, CostOneAllReduce) {
  const auto costs = Costs();
  Step step = Build(Tied("schedule: ONE_F_ONE_B"));
  const ir::Timeline with = testing::Run(step, costs);
  std::int32_t sum = -1;
  for (std::size_t c = 0; c < step.schedule.collectives.size(); ++c) {
    if (step.schedule.collectives[c].work.name != "tied_embedding_all_reduce") continue;
    sum = static_cast<std::int32_t>(c);
  }
  ASSERT_GE(sum, 0);
  const ir::Collective tied = step.schedule.collectives[sum];
  const GroupShape shape = ir::ShapeOf(step.schedule, step.schedule.groups[tied.group]);
  EXPECT_EQ(shape.ranks, 2);
  EXPECT_EQ(shape.ranks_per_node, 1);
  const Picoseconds price = UncontendedTime(costs, costs.CollectiveCost(tied.work, shape));
  EXPECT_GT(price, Picoseconds(0));
  step.schedule.collectives[sum].work.bytes = Bytes(0);
  const Picoseconds nothing =
      UncontendedTime(costs, costs.CollectiveCost(step.schedule.collectives[sum].work, shape));
  const ir::Timeline without = testing::Run(step, costs);
  EXPECT_EQ(with.step - without.step, price - nothing);
  for (std::size_t s = 0; s < 4; ++s) {
    const ir::RankAccount& longer = with.entities[s].account;
    const ir::RankAccount& shorter = without.entities[s].account;
    EXPECT_EQ(
        Idle(longer, ir::BubbleClass::kPpCooldown) - Idle(shorter, ir::BubbleClass::kPpCooldown),
        price - nothing)
        << s;
  }
}

}  // namespace
}  // namespace optimus::step
