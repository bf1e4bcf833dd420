// Reads the trace that the benchmark of importing makes, and counts what has to be in a step of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/kineto_generator.h"
#include "traces/kineto/chrome_json.h"
#include "traces/kineto/kineto.h"

namespace optimus::traces {
namespace {

constexpr int kLayers = 10;
constexpr int kKernels = 8;  // of a layer, and one collective

std::string Generated() {
  testing::KinetoSize size;
  size.layers = kLayers;
  std::string text;
  testing::KinetoGenerator(size, [&text](absl::string_view piece) {
    text.append(piece.data(), piece.size());
  }).Write();
  return text;
}

int Count(const RecordedRank& rank, OpKind kind) {
  int count = 0;
  for (const RecordedOp& op : rank.ops) count += op.kind == kind ? 1 : 0;
  return count;
}

int Count(const RecordedRank& rank, DependencyKind kind) {
  int count = 0;
  for (const Dependency& dependency : rank.dependencies) count += dependency.kind == kind ? 1 : 0;
  return count;
}

TEST(KinetoGenerated, AStepIsReadWhole) {
  const absl::StatusOr<Recording> recording = ReadKinetoText(Generated(), "trace.json", {});
  ASSERT_TRUE(recording.ok()) << recording.status();
  const RecordedRank& rank = recording->ranks.front();
  EXPECT_EQ(recording->steps.size(), 3U);
  EXPECT_EQ(Count(rank, OpKind::kCompute), kLayers * kKernels);
  EXPECT_EQ(Count(rank, OpKind::kCommunication), kLayers);
  EXPECT_EQ(Count(rank, OpKind::kHost), kLayers * (kKernels + 3));
  EXPECT_EQ(Count(rank, DependencyKind::kLaunch), kLayers * (kKernels + 1));
  EXPECT_EQ(Count(rank, DependencyKind::kEvent), kLayers);
  EXPECT_EQ(rank.step_start, Picoseconds(0));
  EXPECT_TRUE(recording->remarks.empty()) << recording->remarks.front().what;
}

TEST(KinetoGenerated, ItsStepsAddUpToTheFile) {
  const std::string text = Generated();
  std::size_t kernels = 0;
  for (const std::int64_t step : {100, 101, 102}) {
    KinetoOptions options;
    options.step = step;
    kernels += ReadKinetoText(text, "trace.json", options)->ranks.front().ops.size();
  }
  EXPECT_EQ(kernels, std::size_t{3} * kLayers * (2 * (kKernels + 1) + 2));
}

TEST(KinetoGenerated, AsOurChromeJsonItStaysTheSame) {
  const Recording recording = *ReadKinetoText(Generated(), "trace.json", {});
  EXPECT_EQ(*ReadKinetoText(*ChromeJsonText(recording), "trace.json", {}), recording);
}

}  // namespace
}  // namespace optimus::traces
