#include "traces/perfetto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/status/status.h"
#include "traces/bubble_intervals.h"
#include "traces/span_name.h"
#include "traces/test_schedule.h"
#include "traces/trace_reader.h"

namespace optimus::traces {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Export(const TestSchedule& test) {
  auto trace = ToPerfetto(test.schedule(), test.timeline());
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.value_or("");
}

const char* ProcessName(int stage) { return stage == 0 ? "stage 0 (rank 0)" : "stage 1 (rank 4)"; }

TEST(PerfettoTest, EveryOperationIsOneSliceWithItsTimes) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const TestSchedule test(seed);
    const TraceReader reader(Export(test));
    for (int stage = 0; stage < 2; ++stage) {
      std::map<std::string, std::size_t> next;
      const ir::Program& program = test.schedule().programs[stage];
      for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
        const ir::Operation& op = program.operations[id];
        const Track& track = reader.Find(ProcessName(stage), TrackName(op.stream));
        const std::size_t at = next[track.name]++;
        ASSERT_LT(at, track.slices.size());
        const Slice& slice = track.slices[at];
        EXPECT_EQ(slice.name, SpanName(test.schedule(), op));
        EXPECT_EQ(slice.depth, 0U);
        // Within half a nanosecond at both ends.
        const std::int64_t start = test.starts(stage)[id].value();
        const std::int64_t end = test.ends(stage)[id].value();
        EXPECT_LE(std::abs(static_cast<std::int64_t>(slice.start_ns) * 1000 - start), 500);
        EXPECT_LE(std::abs(static_cast<std::int64_t>(slice.end_ns) * 1000 - end), 500);
        if (end - start < 1'000'000) {
          EXPECT_EQ(slice.arguments.at("duration_ps"), std::to_string(end - start));
        } else {
          EXPECT_EQ(slice.arguments.count("duration_ps"), 0U);
        }
      }
      for (const auto& [name, count] : next) {
        EXPECT_EQ(reader.Find(ProcessName(stage), name).slices.size(), count);
      }
    }
  }
}

TEST(PerfettoTest, BubblesAddUpToTheAccount) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const TestSchedule test(seed, 1 + static_cast<int>(seed % 5));
    const ir::Timeline timeline = test.timeline();
    for (int stage = 0; stage < 2; ++stage) {
      std::array<Picoseconds, ir::kBubbleClassCount> sums{};
      Picoseconds previous;
      for (const BubbleInterval& bubble :
           BubbleIntervals(test.schedule(), test.schedule().programs[stage], test.starts(stage),
                           test.ends(stage), timeline.step)) {
        EXPECT_LT(bubble.start, bubble.end);
        EXPECT_GE(bubble.start, previous);
        previous = bubble.end;
        sums[static_cast<std::size_t>(bubble.cause)] += bubble.end - bubble.start;
      }
      EXPECT_EQ(sums, timeline.entities[stage].account.bubbles) << "seed " << seed;
    }
  }
}

TEST(PerfettoTest, BubblesTrackFillsEveryGapOfTheComputeTrack) {
  const TestSchedule test(7);
  const TraceReader reader(Export(test));
  for (int stage = 0; stage < 2; ++stage) {
    std::uint64_t covered = 0;
    std::map<std::string, std::uint64_t> by_class;
    for (const Slice& s : reader.Find(ProcessName(stage), "compute").slices) {
      covered += s.end_ns - s.start_ns;
    }
    for (const Slice& s : reader.Find(ProcessName(stage), "bubbles").slices) {
      covered += s.end_ns - s.start_ns;
      EXPECT_EQ(s.category, "bubble");
      by_class[s.name] += s.end_ns - s.start_ns;
    }
    // Exactly: every end is the next start, and both are rounded alike.
    EXPECT_EQ(covered, static_cast<std::uint64_t>((test.step().value() + 500) / 1000));
    const ir::RankAccount account = test.timeline().entities[stage].account;
    for (const auto& [name, ns] : by_class) {
      double expected = -1;
      for (int c = 0; c < ir::kBubbleClassCount; ++c) {
        if (name == ToString(static_cast<ir::BubbleClass>(c))) {
          expected = static_cast<double>(account.bubbles[c].value()) / 1000;
        }
      }
      EXPECT_NEAR(static_cast<double>(ns), expected, 20) << name;
    }
  }
}

TEST(PerfettoTest, SlicesAreNamedAndLabelled) {
  const TestSchedule test(1);
  const TraceReader reader(Export(test));
  const Track& compute = reader.Find("stage 0 (rank 0)", "compute");
  const Slice& llm = compute.slices[0];
  EXPECT_EQ(llm.name, "fc1 fwd L0 mb0");
  EXPECT_EQ(llm.arguments.at("module"), "llm");
  EXPECT_EQ(llm.arguments.at("phase"), "forward");
  EXPECT_EQ(llm.arguments.at("layer"), "0");
  EXPECT_EQ(llm.arguments.at("chunk"), "0");
  EXPECT_EQ(llm.arguments.at("micro_batch"), "0");
  EXPECT_EQ(llm.arguments.count("slice"), 0U);
  const Slice& encoder = compute.slices[2];
  EXPECT_EQ(encoder.name, "fc1 fwd enc L0 mb1 s2");
  EXPECT_EQ(encoder.arguments.at("slice"), "2");
  EXPECT_EQ(compute.slices.back().name, "optimizer");
  const Slice& send = reader.Find("stage 0 (rank 0)", "forward send").slices[1];
  EXPECT_EQ(send.name, "activations fwd c0 mb1 to stage 1");
  EXPECT_EQ(send.category, "send");
  EXPECT_EQ(send.arguments.at("bytes"), "64");
  EXPECT_EQ(send.arguments.at("peer_stage"), "1");
  const Slice& gather = reader.Find("stage 1 (rank 4)", "data parallel").slices[0];
  EXPECT_EQ(gather.name, "all-gather param sync");
  EXPECT_EQ(gather.category, "all_gather");
}

TEST(PerfettoTest, NamesOfGradientsSayThePhaseOnce) {
  ir::Schedule schedule;
  schedule.kernels.resize(1);
  ir::Operation op;
  op.work = 0;
  op.tag.layer = 7;
  op.tag.micro_batch = 2;
  const auto name = [&](const char* kernel, Phase phase) {
    schedule.kernels[0].name = kernel;
    op.tag.phase = phase;
    return SpanName(schedule, op);
  };
  EXPECT_EQ(name("fc1", Phase::kRecompute), "fc1 recompute L7 mb2");
  EXPECT_EQ(name("fc1_dgrad", Phase::kBackward), "fc1 dgrad L7 mb2");
  EXPECT_EQ(name("fc1_wgrad", Phase::kWeightGradient), "fc1 wgrad L7 mb2");
  EXPECT_EQ(name("fc1_wgrad", Phase::kBackward), "fc1 wgrad L7 mb2");
  EXPECT_EQ(name("_dgrad", Phase::kBackward), "_dgrad bwd L7 mb2");
}

TEST(PerfettoTest, BubblesNameWhatTheyWaitFor) {
  const TestSchedule test(1);
  const TraceReader reader(Export(test));
  const Slice& first = reader.Find("stage 0 (rank 0)", "bubbles").slices.front();
  ASSERT_GT(test.starts(0)[1], Picoseconds(0)) << "this seed has no first bubble; take another";
  EXPECT_EQ(first.name, "dp_all_gather");
  EXPECT_EQ(first.arguments.at("waits_for"), "all-gather param sync");
  int tensor_parallel = 0;
  for (const Slice& slice : reader.Find("stage 1 (rank 4)", "bubbles").slices) {
    if (slice.name != "tp") continue;
    ++tensor_parallel;
    EXPECT_THAT(slice.arguments.at("waits_for"),
                ::testing::AnyOf(HasSubstr("all-gather fwd"), HasSubstr("reduce-scatter bwd")));
  }
  EXPECT_GT(tensor_parallel, 0);
}

TEST(PerfettoTest, KernelsCarryFlopsOrBytes) {
  const TestSchedule test(3);
  const TraceReader reader(Export(test));
  const ir::Program& program = test.schedule().programs[0];
  const Track& compute = reader.Find("stage 0 (rank 0)", "compute");
  std::size_t at = 0;
  for (const ir::Operation& op : program.operations) {
    if (op.stream != ir::Stream::kCompute) continue;
    const Kernel& kernel = test.schedule().kernels[op.work];
    const Slice& slice = compute.slices[at++];
    const bool gemm = kernel.kind == KernelKind::kGemm;
    EXPECT_EQ(slice.category, gemm ? "gemm" : "memory_bound");
    EXPECT_EQ(slice.arguments.at(gemm ? "flops" : "bytes"),
              std::to_string(gemm ? static_cast<std::int64_t>(kernel.flops.value())
                                  : kernel.bytes.value()));
  }
}

TEST(PerfettoTest, TracksAreOrderedComputeFirst) {
  const TraceReader reader(Export(TestSchedule(2)));
  std::map<int, std::string> by_order;
  for (const auto& [uuid, track] : reader.tracks()) {
    if (track.process == "stage 0 (rank 0)") by_order[track.order] = track.name;
  }
  std::vector<std::string> names;
  names.reserve(by_order.size());
  for (const auto& [order, name] : by_order) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("compute", "bubbles", "tensor parallel", "forward send",
                                 "backward receive", "data parallel"));
}

// One stage of two lanes on four GPUs: the encoder of lane 0 sends to the LLM's ranks of lane 1.
ir::Schedule TwoLanes() {
  ir::Schedule schedule;
  schedule.world = {1, 1, 4};
  schedule.lanes = 2;
  schedule.modules = {{"llm", 1, false}, {"vit", 1, false}};
  schedule.kernels = {{}};
  schedule.kernels[0].name = "fc1";
  schedule.transfers = {{"features", Bytes(64), {}}};
  schedule.programs.resize(2);
  for (int lane = 0; lane < 2; ++lane) {
    ir::Program& program = schedule.programs[lane];
    program.lane = lane;
    ir::Operation kernel;
    kernel.work = 0;
    kernel.tag = {1, 0, -1, 0, 3, Phase::kForward};
    ir::Operation message = kernel;
    message.kind = lane == 0 ? ir::OperationKind::kSend : ir::OperationKind::kReceive;
    message.stream = lane == 0 ? ir::Stream::kEncoderSend : ir::Stream::kEncoderReceive;
    message.tag.layer = message.tag.slice = -1;
    message.peer_stage = 0;
    message.peer_lane = 1 - lane;
    message.message = 0;
    program.operations = {kernel, message};
  }
  return schedule;
}

TEST(PerfettoTest, EveryLaneIsAProcessWithTheEncodersStreams) {
  ir::Timeline timeline;
  timeline.step = Picoseconds(3'000'000);
  for (const int rank : {0, 2}) {
    timeline.spans.push_back(
        {rank, 0, Picoseconds(std::int64_t{1000} * rank), Picoseconds(1'000'000)});
    timeline.spans.push_back({rank, 1, Picoseconds(1'000'000), Picoseconds(3'000'000)});
  }
  const auto trace = ToPerfetto(TwoLanes(), timeline);
  ASSERT_TRUE(trace.ok()) << trace.status();
  const TraceReader reader(*trace);
  EXPECT_EQ(reader.Find("stage 0 lane 0 (rank 0)", "encoder send").slices[0].name,
            "features fwd enc mb3 to stage 0 lane 1");
  const Track& receive = reader.Find("stage 0 lane 1 (rank 2)", "encoder receive");
  EXPECT_EQ(receive.slices[0].name, "features fwd enc mb3 from stage 0 lane 0");
  EXPECT_EQ(receive.slices[0].arguments.at("peer_lane"), "0");
  const Track& compute = reader.Find("stage 0 lane 1 (rank 2)", "compute");
  EXPECT_EQ(compute.slices[0].name, "fc1 fwd enc L0 mb3 s0");
  EXPECT_EQ(compute.slices[0].start_ns, 2U);
}

TEST(PerfettoTest, SameInputSameBytes) {
  EXPECT_EQ(Export(TestSchedule(5)), Export(TestSchedule(5)));
  EXPECT_NE(Export(TestSchedule(5)), Export(TestSchedule(6)));
}

TEST(PerfettoTest, RefusesTimelinesItCannotDraw) {
  const TestSchedule test(4);
  const auto error = [&](const ir::Timeline& timeline) {
    return ToPerfetto(test.schedule(), timeline).status();
  };
  ir::Timeline timeline = test.timeline();
  timeline.spans.clear();
  EXPECT_EQ(error(timeline).code(), absl::StatusCode::kFailedPrecondition);

  timeline = test.timeline();
  timeline.spans.pop_back();
  EXPECT_EQ(error(timeline).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(error(timeline).message()), HasSubstr("rank 4 (stage 1)"));

  timeline = test.timeline();
  timeline.spans[3].operation = 2;
  EXPECT_THAT(std::string(error(timeline).message()), HasSubstr("operation 3"));

  timeline = test.timeline();
  timeline.spans[2].end = timeline.spans[2].start - Picoseconds(1);
  EXPECT_THAT(std::string(error(timeline).message()), HasSubstr("start <= end"));

  timeline = test.timeline();
  for (ir::Span& span : timeline.spans) span.rank += 100;
  EXPECT_THAT(std::string(error(timeline).message()), HasSubstr("ranks 0 to 7"));

  timeline = test.timeline();
  timeline.spans[3].start = Picoseconds(0);  // the second kernel of the compute stream
  timeline.spans[1].end = timeline.spans[1].start + Picoseconds(100);
  timeline.spans[3].end = timeline.spans[1].end + Picoseconds(100);
  EXPECT_THAT(std::string(error(timeline).message()), HasSubstr("previous operation ends"));
}

}  // namespace
}  // namespace optimus::traces
