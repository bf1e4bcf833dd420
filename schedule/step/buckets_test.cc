// Data-parallel communication in buckets of layers.

#include "schedule/step/buckets.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "schedule/step/testing.h"

namespace optimus::step {
namespace {

using testing::Build;
using testing::Costs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Parse;
using testing::StepTime;

VirtualStage Items(const std::vector<std::int64_t>& trained) {
  VirtualStage stage;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    StageItem item;
    item.tag.module = 0;
    item.tag.layer = static_cast<std::int16_t>(i);
    item.trained_parameters = trained[i];
    stage.items.push_back(item);
  }
  return stage;
}

std::vector<std::int64_t> Sizes(const std::vector<std::int64_t>& trained, std::int64_t least) {
  std::vector<std::int64_t> sizes;
  for (const Bucket& bucket : BucketsOf(Items(trained), least)) sizes.push_back(bucket.parameters);
  return sizes;
}

TEST(Buckets, FillFromTheBack) {
  EXPECT_THAT(Sizes({5, 1, 1, 1, 1}, 2), ElementsAre(2, 2, 5));
  EXPECT_THAT(Sizes({5, 1, 1, 1, 1}, 1), ElementsAre(1, 1, 1, 1, 5));
  EXPECT_THAT(Sizes({5, 1, 1, 1, 1}, 100), ElementsAre(9));
  EXPECT_THAT(Sizes({1, 1, 1, 1, 1}, 2), ElementsAre(2, 2, 1));
  EXPECT_THAT(Sizes({0, 0, 3, 0, 4}, 3), ElementsAre(4, 3));  // frozen layers
  EXPECT_THAT(Sizes({0, 0}, 3), ElementsAre());
}

TEST(Buckets, EveryPieceIsInTheBucketOfItsLayer) {
  VirtualStage stage = Items({3, 0, 3, 3});
  for (const StageItem& item : stage.items) {
    stage.forward.push_back({nullptr, item.tag});
    stage.forward.push_back({nullptr, item.tag});  // two slices
  }
  const std::vector<Bucket> buckets = BucketsOf(stage, 6);
  // The frozen layer is in front of the first bucket's layers and behind the second's.
  EXPECT_THAT(BucketOfPieces(stage, buckets, stage.forward), ElementsAre(1, 1, -1, -1, 0, 0, 0, 0));
}

std::string Llm(const std::string& plan, int stages = 1) {
  return absl::StrCat(R"(name: "dp" llm: "gpt-11b" hardware { profile: "h100-80gb" gpus: )",
                      stages * 64, R"( } batch { global_batch: 512 micro_batch: 16
    sequence_length: 2048 } plan { data_parallel: 8 tensor_parallel: 8 layout: EQUAL_LAYERS
    pipeline_parallel: )",
                      stages, " ", plan, " }");
}

std::string Overlapped(const std::string& schedule, const std::string& more = "") {
  return absl::StrCat("schedule: ", schedule, " dp_communication: DP_OVERLAPPED ", more);
}

constexpr char kBuckets[] = " dp_bucket_parameters: 40000000 ";

std::int64_t SyncBytes(const Step& step, Phase phase) {
  std::int64_t bytes = 0;
  for (const ir::Program& program : step.schedule.programs) {
    for (const ir::Operation& op : program.operations) {
      if (op.stream != ir::Stream::kDataParallel || op.tag.phase != phase) continue;
      bytes += step.schedule.collectives[op.work].work.bytes.value();
    }
  }
  return bytes;
}

int Syncs(const Step& step, Phase phase) {
  const auto& operations = step.schedule.programs[0].operations;
  return static_cast<int>(
      std::count_if(operations.begin(), operations.end(), [phase](const ir::Operation& op) {
        return op.stream == ir::Stream::kDataParallel && op.tag.phase == phase && op.tag.chunk >= 0;
      }));
}

TEST(BucketedDataParallel, MovesTheSameBytesInMoreParts) {
  for (const char* schedule : {"ONE_F_ONE_B", "INTERLEAVED model_chunks: 2", "ZB_H1", "ZB_V"}) {
    for (const char* optimizer : {"", "no_distributed_optimizer: true"}) {
      const Step whole = Build(Llm(Overlapped(schedule, optimizer), 2));
      const Step parts = Build(Llm(Overlapped(schedule, absl::StrCat(kBuckets, optimizer)), 2));
      for (const Phase phase : {Phase::kParameterSync, Phase::kGradientSync}) {
        EXPECT_EQ(SyncBytes(parts, phase), SyncBytes(whole, phase)) << schedule;
      }
      EXPECT_GT(Syncs(parts, Phase::kGradientSync), 3 * Syncs(whole, Phase::kGradientSync));
    }
  }
}

// One chunk: as a whole everything is exposed, in buckets all but the first and the last is not.
TEST(BucketedDataParallel, HidesBehindTheFirstForwardAndTheLastBackward) {
  const auto costs = Costs();
  for (const int stages : {1, 2}) {
    for (const char* optimizer : {"", "no_distributed_optimizer: true "}) {
      const auto bubbles = [&](const std::string& plan) {
        const Step step = Build(Llm(absl::StrCat(plan, optimizer), stages));
        const ir::RankAccount account = testing::Run(step, costs).entities[0].account;
        return account.bubbles[static_cast<std::size_t>(ir::BubbleClass::kDpAllGather)] +
               account.bubbles[static_cast<std::size_t>(ir::BubbleClass::kDpReduceScatter)];
      };
      const Picoseconds whole = bubbles(Overlapped("ONE_F_ONE_B"));
      const Picoseconds parts = bubbles(Overlapped("ONE_F_ONE_B", kBuckets));
      EXPECT_LT(4 * parts, whole) << stages << optimizer;
    }
  }
}

// A bucket is reduced when the last weight gradient of its layers is there, and gathered before
// their first forward: every layer's own kernels say so.
TEST(BucketedDataParallel, WaitsForEveryLayerOfABucket) {
  for (const char* schedule : {"ONE_F_ONE_B", "ZB_H1", "ZB_V"}) {
    const Step step = Build(Llm(Overlapped(schedule, kBuckets), 2));
    for (const ir::Program& program : step.schedule.programs) {
      std::int64_t gathers = 0;
      std::int64_t waited = 0;
      for (const ir::Operation& op : program.operations) {
        if (op.stream == ir::Stream::kDataParallel) {
          gathers += op.tag.phase == Phase::kParameterSync ? 1 : 0;
          if (op.tag.phase != Phase::kGradientSync || op.tag.chunk < 0) continue;
          ASSERT_EQ(op.dependency_count, 1U);
          const ir::Operation& last = program.operations[program.DependenciesOf(op)[0]];
          EXPECT_EQ(last.stream, ir::Stream::kCompute);
          EXPECT_EQ(last.tag.chunk, op.tag.chunk);
          EXPECT_NE(last.tag.phase, Phase::kForward);
          continue;
        }
        for (const std::uint32_t before : program.DependenciesOf(op)) {
          if (program.operations[before].tag.phase != Phase::kParameterSync) continue;
          ++waited;
          EXPECT_EQ(op.tag.phase, Phase::kForward);
          EXPECT_EQ(program.operations[before].tag.chunk, op.tag.chunk);
        }
      }
      EXPECT_GT(gathers, 3) << schedule;
      EXPECT_EQ(waited, gathers) << schedule;
    }
  }
}

TEST(BucketedDataParallel, OneBucketThatHoldsAllIsAsLongAsNone) {
  const auto costs = Costs();
  const std::string one = " dp_bucket_parameters: 1000000000000 ";
  for (const char* schedule : {"ONE_F_ONE_B", "INTERLEAVED model_chunks: 2", "ZB_H1"}) {
    EXPECT_EQ(StepTime(Build(Llm(Overlapped(schedule, one), 2)), costs),
              StepTime(Build(Llm(Overlapped(schedule), 2)), costs))
        << schedule;
  }
}

TEST(BucketedDataParallel, NeedsOverlap) {
  const auto refused = [](const std::string& plan) {
    return std::string(BuildStep(Parse(Llm(plan)), Costs()).status().message());
  };
  EXPECT_THAT(refused("schedule: ONE_F_ONE_B dp_bucket_parameters: 5"),
              HasSubstr("plan.dp_bucket_parameters: is set without DP_OVERLAPPED"));
  EXPECT_THAT(refused(Overlapped("ONE_F_ONE_B", "dp_bucket_parameters: -5")),
              HasSubstr("plan.dp_bucket_parameters: is -5"));
}

}  // namespace
}  // namespace optimus::step
