#include "schedule/ir/serialize.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/files.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "schedule/ir/critical_path.h"
#include "schedule/ir/testing.h"
#include "schedule/ir/validate.h"

namespace optimus::ir {
namespace {

using ::testing::AllOf;
using testing::HandCosts;
using ::testing::HasSubstr;
using testing::OneForwardOneBackward;
using testing::RandomSchedule;
using testing::ScheduleBuilder;

class SerializeTest : public ::testing::Test {
 protected:
  SerializeTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 absl::StrCat("optimus_serialize_", info->name(), "_", getpid());
    std::filesystem::create_directories(directory_);
  }
  ~SerializeTest() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return (directory_ / name).string(); }
  void WriteRaw(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }
  std::string ReadRaw(const std::string& path) {
    return optimus::ReadFile(path).value_or("unreadable");
  }

  std::filesystem::path directory_;
};

// Every field gets a value, awkward ones included.
void FillWithRandom(std::mt19937& random, Schedule& schedule) {
  const auto any = [&] {
    return static_cast<std::int64_t>((std::uint64_t{random()} << 32) | random());
  };
  schedule.name = absl::StrCat("näme \"", random(), "\"\n");
  schedule.micro_batches = static_cast<std::int32_t>(any());
  schedule.modules = {{"llm", static_cast<std::int32_t>(any()), true}, {"", 0, false}};
  for (int i = 0; i < 5; ++i) {
    Kernel kernel;
    kernel.kind = static_cast<KernelKind>(random() % 4);
    kernel.name = absl::StrCat("kernel", random() % 3);
    if (random() % 2 == 0) kernel.gemm = {any(), any(), any()};
    if (random() % 2 == 0) {
      kernel.attention = {any(), any(), any(), any(), any(), random() % 2 == 0, random() % 2 == 0};
    }
    kernel.flops = Flops(static_cast<double>(any()) * 0.1);
    kernel.bytes = Bytes(any());
    kernel.fixed = Picoseconds(any());
    schedule.kernels.push_back(kernel);
  }
  Operation odd;
  odd.tag.module = -7;
  odd.tag.layer = std::numeric_limits<std::int16_t>::min();
  odd.tag.chunk = std::numeric_limits<std::int16_t>::max();
  odd.tag.micro_batch = std::numeric_limits<std::int32_t>::min();
  odd.work = -9;
  odd.peer_stage = 0;
  odd.message = 0;
  schedule.programs[0].operations.push_back(odd);
}

TEST_F(SerializeTest, RoundTripOfRandomSchedulesIsExact) {
  std::mt19937 random(1);
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    Schedule schedule =
        RandomSchedule(seed, /*encoders=*/seed % 2 == 1, /*pairs=*/seed % 3 == 0).Build(80);
    schedule.modules.push_back({"vit", 3, true, 4, 2, {1, 5, 7}});
    FillWithRandom(random, schedule);
    const absl::StatusOr<Schedule> back = FromProto(ToProto(schedule));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, schedule) << "seed " << seed;
    for (const char* name : {"a.schedule.pb", "a.textproto"}) {
      ASSERT_TRUE(WriteSchedule(Path(name), schedule).ok());
      const absl::StatusOr<Schedule> read = ReadSchedule(Path(name));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(*read, schedule) << name << ", seed " << seed;
    }
  }
}

// What files without lanes say is left out, so they are the same bytes as before there were lanes.
TEST_F(SerializeTest, OneLaneIsLeftOut) {
  const proto::Schedule one = ToProto(RandomSchedule(3).Build(200));
  EXPECT_EQ(one.lanes(), 0);
  std::string text;
  ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(one, &text));
  for (const char* field : {"lane", "pp_stride", "pp_pair", "tp_block", "tp_stride", "pipelines",
                            "skipped", "both_directions"}) {
    EXPECT_THAT(text, ::testing::Not(HasSubstr(field)));
  }
  const absl::StatusOr<Schedule> back = FromProto(one);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->lanes, 1);
  const proto::Schedule several = ToProto(ScheduleBuilder({1, 2, 4}, 2).Take());
  EXPECT_EQ(several.lanes(), 2);
  EXPECT_EQ(several.programs(3).lane(), 1);
}

TEST_F(SerializeTest, ModulesInBothDirections) {
  Schedule schedule = RandomSchedule(3).Build(50);
  schedule.modules.push_back({"llm", 2});
  schedule.modules.back().both_directions = true;
  const absl::StatusOr<Schedule> back = FromProto(ToProto(schedule));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, schedule);
}

TEST_F(SerializeTest, PairsOfStages) {
  Schedule schedule = RandomSchedule(3).Build(50);
  schedule.groups.push_back({"tied", false, true, false});
  schedule.groups.back().pp_pair = {0, 3};
  proto::Schedule message = ToProto(schedule);
  const absl::StatusOr<Schedule> back = FromProto(message);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, schedule);
  proto::Group& group = *message.mutable_groups(message.groups_size() - 1);
  group.add_pp_pair(4);
  EXPECT_THAT(std::string(FromProto(message).status().message()),
              HasSubstr("pp_pair: has 3 stages; hint: name two"));
  group.clear_pp_pair();
  group.add_pp_pair(0);
  group.add_pp_pair(0);
  EXPECT_THAT(std::string(FromProto(message).status().message()),
              HasSubstr("pp_pair: is stage 0 twice"));
}

TEST_F(SerializeTest, SameScheduleSameBytes) {
  const Schedule schedule = RandomSchedule(3).Build(50);
  ASSERT_TRUE(WriteSchedule(Path("a.schedule.pb"), schedule).ok());
  ASSERT_TRUE(WriteSchedule(Path("b.schedule.pb"), schedule).ok());
  EXPECT_EQ(ReadRaw(Path("a.schedule.pb")), ReadRaw(Path("b.schedule.pb")));
}

TEST(ProgramEquality, LooksAtDependenciesNotAtTheirPlaceInTheTable) {
  const Program program = OneForwardOneBackward(2, 2, 1, 2, 0).programs[0];
  Program moved = program;
  moved.dependencies.insert(moved.dependencies.begin(), 5);
  for (Operation& op : moved.operations) ++op.first_dependency;
  EXPECT_EQ(moved, program);
  moved.dependencies[1] ^= 1;
  EXPECT_FALSE(moved == program);
  moved = program;
  moved.lane = 1;
  EXPECT_FALSE(moved == program);
  moved = program;
  moved.operations.pop_back();
  EXPECT_FALSE(moved == program);
}

TEST_F(SerializeTest, RoundTripOfATimelineIsExact) {
  const HandCosts costs;
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    const Schedule schedule = RandomSchedule(seed).Build(60);
    absl::StatusOr<Timeline> timeline = CriticalPathRunner(costs).Run(schedule);
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    timeline->fidelity = "folded";
    timeline->fidelity_reason = "nothing contends";
    for (const char* name : {"a.timeline.pb", "a.textproto"}) {
      ASSERT_TRUE(WriteTimeline(Path(name), *timeline).ok());
      const absl::StatusOr<Timeline> read = ReadTimeline(Path(name));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(*read, *timeline) << name << ", seed " << seed;
    }
  }
}

// Every proper beginning of a file, and every file with something behind it.
TEST_F(SerializeTest, TruncatedAndContinuedFilesAreRefused) {
  ASSERT_TRUE(WriteSchedule(Path("whole.schedule.pb"), OneForwardOneBackward(2, 1, 1, 2, 0)).ok());
  const std::string whole = ReadRaw(Path("whole.schedule.pb"));
  const std::string cut = Path("cut.schedule.pb");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    WriteRaw(cut, whole.substr(0, size));
    const absl::StatusOr<Schedule> read = ReadSchedule(cut);
    ASSERT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << size << " bytes";
    EXPECT_THAT(std::string(read.status().message()),
                AllOf(HasSubstr(cut), HasSubstr(size == 0 ? "is empty" : "cut short")));
  }
  // A field that protobuf would take, one that it does not know, and noise.
  for (const std::string& tail : {std::string("\x08\x01"), std::string("\xf8\x07\x01"),
                                  std::string("garbage"), std::string(1, '\0')}) {
    WriteRaw(cut, whole + tail);
    EXPECT_THAT(std::string(ReadSchedule(cut).status().message()),
                HasSubstr("something follows its end"));
  }
}

TEST_F(SerializeTest, OtherFilesAreRefused) {
  EXPECT_EQ(ReadSchedule(Path("missing.schedule.pb")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadSchedule(Path("missing.textproto")).status().code(), absl::StatusCode::kNotFound);
  const HandCosts costs;
  const auto timeline = CriticalPathRunner(costs).Run(OneForwardOneBackward(2, 1, 1, 2, 0));
  ASSERT_TRUE(WriteTimeline(Path("a.timeline.pb"), *timeline).ok());
  EXPECT_EQ(ReadSchedule(Path("a.timeline.pb")).status().code(),
            absl::StatusCode::kInvalidArgument);
  WriteRaw(Path("bad.textproto"), "version: 1\nprogramms {}\n");
  EXPECT_THAT(std::string(ReadSchedule(Path("bad.textproto")).status().message()),
              HasSubstr("bad.textproto:2:"));
  // A field from the future, properly ended.
  std::string content = "\x08\x01\xa0\x06\x01";
  content += "\x7d\x21\x44\x4e\x45";
  WriteRaw(Path("future.schedule.pb"), content);
  EXPECT_THAT(std::string(ReadSchedule(Path("future.schedule.pb")).status().message()),
              HasSubstr("has fields unknown to optimus.ir.proto.Schedule"));
}

TEST_F(SerializeTest, NothingIsLeftBehindWhereWritingFails) {
  const Schedule schedule = OneForwardOneBackward(2, 1, 1, 2, 0);
  EXPECT_FALSE(WriteSchedule(Path("no/such/folder/a.schedule.pb"), schedule).ok());
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

// The format by hand, as its comments describe it.
TEST_F(SerializeTest, HandWrittenText) {
  WriteRaw(Path("hand.textproto"), R"(
    version: 1
    name: "hand"
    world { dp: 1 pp: 2 tp: 1 }
    gpus_per_node: 8
    kernels { kind: FIXED name: "work" fixed_ps: 1000 }
    transfers { name: "activations" bytes: 10 }
    programs {
      stage: 0
      operations { kind: KERNEL stream: COMPUTE tag { phase: FORWARD } work: 0 }
      operations { kind: SEND stream: FORWARD_SEND tag { phase: FORWARD } work: 0 peer_stage: 1
                   message: 0 dependencies: 0 }
    }
    programs {
      stage: 1
      operations { kind: RECEIVE stream: FORWARD_RECEIVE tag { phase: FORWARD } work: 0
                   peer_stage: 0 message: 0 }
      operations { kind: KERNEL stream: COMPUTE tag { phase: FORWARD } work: 0 dependencies: 0 }
    })");
  const absl::StatusOr<Schedule> schedule = ReadSchedule(Path("hand.textproto"));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  ASSERT_TRUE(Validate(*schedule).ok()) << Validate(*schedule);
  const HandCosts costs;
  EXPECT_EQ(CriticalPathRunner(costs).Run(*schedule)->step, Picoseconds(2010));
}

void ExpectRefused(const proto::Schedule& message, const std::string& text) {
  const absl::StatusOr<Schedule> schedule = FromProto(message);
  EXPECT_EQ(schedule.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(schedule.status().message()),
              AllOf(HasSubstr(text), HasSubstr("; hint:")));
}

TEST(FromProto, UnknownVersions) {
  proto::Schedule message = ToProto(OneForwardOneBackward(2, 1, 1, 2, 0));
  message.set_version(2);
  ExpectRefused(message, "version: 2 is not known");
  message.clear_version();
  ExpectRefused(message, "version: 0 is not known");
  proto::Timeline timeline = ToProto(Timeline{});
  timeline.set_version(7);
  EXPECT_THAT(std::string(FromProto(timeline).status().message()),
              HasSubstr("version: 7 is not known"));
}

TEST(FromProto, ZeroAndUnknownEnums) {
  const proto::Schedule good = ToProto(OneForwardOneBackward(2, 1, 1, 2, 0));
  const auto refused = [&](const std::string& field, auto change) {
    proto::Schedule message = good;
    change(*message.mutable_programs(1)->mutable_operations(2), message);
    ExpectRefused(message, field);
  };
  using Op = proto::Operation;
  using All = proto::Schedule;
  refused("programs[1].operations[2].kind: is missing", [](Op& op, All&) { op.clear_kind(); });
  refused("programs[1].operations[2].stream: is missing", [](Op& op, All&) { op.clear_stream(); });
  refused("programs[1].operations[2].tag.phase: is missing", [](Op& op, All&) { op.clear_tag(); });
  refused("programs[1].operations[2].kind: unknown value 5",
          [](Op& op, All&) { op.set_kind(static_cast<Op::Kind>(5)); });
  refused("programs[1].operations[2].stream: unknown value -1",
          [](Op& op, All&) { op.set_stream(static_cast<Op::Stream>(-1)); });
  refused("kernels[1].kind: is missing",
          [](Op&, All& all) { all.mutable_kernels(1)->clear_kind(); });
  refused("collectives[0].kind: is missing", [](Op&, All& all) { all.add_collectives(); });
}

TEST(FromProto, NumbersThatDoNotFit) {
  proto::Schedule message = ToProto(OneForwardOneBackward(2, 1, 1, 2, 0));
  message.mutable_programs(0)->mutable_operations(0)->mutable_tag()->set_layer(40'000);
  ExpectRefused(message, "programs[0].operations[0].tag.layer: 40000 is out of range");
}

}  // namespace
}  // namespace optimus::ir
