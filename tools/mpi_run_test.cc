// `optimus run` and `optimus profile` on several ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "hw_profiles/profile.h"
#include "schedule/ir/serialize.h"
#include "schedule/step/step.h"
#include "tools/mpi_testing.h"

namespace optimus::tools {
namespace {

using MpiRunTest = MpiTest;

TEST_F(MpiRunTest, TwoRanksMeasureAStepOfTheCpu) {
  const Json json =
      JsonOfRanks(2,
                  "run examples/cpu/numerics_pp2_optimus.textproto --backend=cpu --iterations=4 "
                  "--timeline=$W/t.timeline.pb");
  EXPECT_EQ(json["measured"]["backend"], "cpu");
  EXPECT_EQ(json["measured"]["steps_s"].size(), 4);
  EXPECT_EQ(json["gpus"], 2);
  EXPECT_EQ(json["stages"].size(), 2);
  EXPECT_GT(json["compute_s"], 0);
  const auto timeline = ir::ReadTimeline(Work() + "/t.timeline.pb");
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_EQ(timeline->entities.size(), 2);
  for (const ir::EntityAccount& entity : timeline->entities) {
    EXPECT_EQ(entity.account.total(), timeline->step);
  }
}

TEST_F(MpiRunTest, ARunOfAScheduleFileNeedsNoProfile) {
  ASSERT_EQ(Run("simulate examples/cpu/numerics_tp2_megatron.textproto "
                "--schedule=$W/s.schedule.pb")
                .exit_code,
            0);
  const Json json = JsonOfRanks(2, "run $W/s.schedule.pb --backend=cpu --iterations=2");
  EXPECT_FALSE(json.contains("profile"));
  EXPECT_FALSE(json.contains("mfu"));
  EXPECT_GT(json["iteration_time_s"], 0);
}

// Every rank runs what the first one planned under the flag: the schedule that `simulate` makes.
TEST_F(MpiRunTest, AnotherPipelineScheduleRunsOnAllRanks) {
  const std::string file = "examples/cpu/pp2_1f1b.textproto";
  ASSERT_EQ(
      Run(absl::StrCat("simulate ", file, " --pipeline=zb-h1 --schedule=$W/s.schedule.textproto"))
          .exit_code,
      0);
  const Json json =
      JsonOfRanks(2, absl::StrCat("run ", file, " --backend=cpu --iterations=1 --warmup=0 ",
                                  "--pipeline=zb-h1 --schedule=$W/r.schedule.textproto"));
  EXPECT_EQ(json["stages"].size(), 2);
  EXPECT_EQ(ReadFile(Work() + "/r.schedule.textproto").value(),
            ReadFile(Work() + "/s.schedule.textproto").value());
  ExpectOneError(2, absl::StrCat("run ", file, " --backend=cpu --pipeline=zbh1"),
                 {"--pipeline=zbh1: is none of"});
  ExpectOneError(2, "run $W/s.schedule.textproto --backend=cpu --pipeline=zb-h1",
                 {"--pipeline with a schedule file, which has its order already"});
}

TEST_F(MpiRunTest, BadInputIsSaidOnceAndEndsAllRanks) {
  const std::string file = "examples/cpu/pp2_1f1b.textproto";
  ExpectOneError(3, absl::StrCat("run ", file, " --backend=cpu"),
                 {"this schedule needs 2 ranks", "3 were started", "-np 2 optimus run"});
  ExpectOneError(2, "run $W/none.textproto --backend=cpu", {"none.textproto"});
  ExpectOneError(2, absl::StrCat("run ", file, " --backend=tpu"), {"--backend=tpu"});
  ExpectOneError(2, absl::StrCat("run ", file, " --backend=cpu --nonsense"),
                 {"unknown flag --nonsense"});
  ExpectOneError(2, absl::StrCat("run ", file, " --backend=cpu --trace=$W/none/t.pftrace"),
                 {"no folder"});
}

TEST_F(MpiRunTest, WhatDoesNotFitIntoMemoryIsSaidOnce) {
  ASSERT_EQ(
      Run("simulate examples/cpu/pp2_1f1b.textproto --schedule=$W/s.schedule.textproto").exit_code,
      0);
  const std::string whole = ReadFile(Work() + "/s.schedule.textproto").value();
  const auto with = [&](const std::string& table, const std::string& field,
                        const std::string& value) {
    const std::size_t at = whole.find(field, whole.find(table));
    return absl::StrCat(whole.substr(0, at), field, value, whole.substr(whole.find('\n', at)));
  };
  Write("kernel.schedule.textproto", with("gemm {", "    m: ", "9000000000000"));
  ExpectOneError(2, "run $W/kernel.schedule.textproto --backend=cpu",
                 {"kernel.schedule.textproto: gemm kernel '", " for 2 ranks); hint: "});
  Write("message.schedule.textproto", with("transfers {", "  bytes: ", "9000000000000"));
  ExpectOneError(2, "run $W/message.schedule.textproto --backend=cpu",
                 {"message.schedule.textproto: ", " forward send ", " for what is sent and again"});
  ExpectOneError(2, "profile --for=$W/kernel.schedule.textproto --backend=cpu --out=$W/p.textproto",
                 {"gemm kernel '", " for 2 ranks); hint: "});
}

// What an experiment names is read, too: its profile and its models.
TEST_F(MpiRunTest, NoOutputReplacesAnInput) {
  for (const char* name : {"gpt-cpu", "vit-cpu"}) {
    Write(absl::StrCat(name, ".textproto"),
          ReadFile(absl::StrCat("examples/models/", name, ".textproto")).value());
  }
  Write("core.textproto", ReadFile("examples/cpu/core.textproto").value());
  Write("profile.textproto",  // as validate names the profile that it writes
        absl::StrReplaceAll(ReadFile("examples/cpu/mllm_optimus.textproto").value(),
                            {{"../models/", ""}}));
  for (const char* input : {"core", "vit-cpu"}) {
    ExpectOneError(2,
                   absl::StrCat("run $W/profile.textproto --backend=emulated --trace=$W/", input,
                                ".textproto"),
                   {"--trace would overwrite an input", input});
  }
  ExpectOneError(2, "profile --for=$W/profile.textproto --backend=cpu --out=$W/core.textproto",
                 {"--out would overwrite an input"});
  ExpectOneError(2, "validate run $W/profile.textproto --backend=emulated --out=$W",
                 {"--out would overwrite an input", "profile.textproto"});
}

TEST_F(MpiRunTest, EightEmulatedRanksTakeTheTimeOfTheModel) {
  const Json json = JsonOfRanks(8,
                                "run examples/cpu/emulated_8.textproto --backend=emulated "
                                "--time-scale=30 --iterations=1 --warmup=0");
  const Json simulated =
      Json::parse(Run("simulate examples/cpu/emulated_8.textproto --no-interference --json").out);
  // Never faster than the model; how much slower depends on who else uses the machine.
  const double measured = json["iteration_time_s"];
  EXPECT_GT(measured, 0.99 * simulated["iteration_time_s"].get<double>());
  // What it should have taken is the model's, however late it was. Every rank counts from when it
  // began itself.
  EXPECT_GT(json["measured"]["due_s"], 0.99 * simulated["iteration_time_s"].get<double>());
  EXPECT_LE(json["measured"]["due_s"], measured);
}

TEST_F(MpiRunTest, ProfileOfTwoRanksIsAProfile) {
  const Json json =
      JsonOfRanks(2,
                  "profile --backend=cpu --for=examples/cpu/numerics_tp2_optimus.textproto "
                  "--repetitions=3 --out=$W/mine.textproto");
  EXPECT_FALSE(json["kernels"].empty());
  EXPECT_FALSE(json["transfers"].empty());
  for (const Json& transfer : json["transfers"]) EXPECT_GE(transfer["points"].size(), 3);
  EXPECT_EQ(json["base"], "core");
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["ranks_per_node"], 2);
  const auto profile = hw::LoadProfile(Work() + "/mine.textproto");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_GT(profile->measured_transfers_size(), 0);
  const Result simulated =
      Run("simulate examples/cpu/numerics_tp2_optimus.textproto --profile=$W/mine.textproto");
  EXPECT_EQ(simulated.exit_code, 0) << simulated.err;
}

// Loss and every gradient as of a single process: what a schedule does changes nothing that is
// learnt.
class MpiNumericsTest : public MpiTest,
                        public ::testing::WithParamInterface<std::pair<const char*, int>> {};

TEST_P(MpiNumericsTest, EqualsTheReference) {
  const auto [name, ranks] = GetParam();
  const Json json = JsonOfRanks(ranks, absl::StrCat("run examples/cpu/numerics_", name,
                                                    ".textproto --backend=cpu --numerics "
                                                    "--iterations=2 --warmup=1 --tolerance=1e-4"));
  const Json& numerics = json["numerics"];
  EXPECT_EQ(numerics["within_tolerance"], true);
  EXPECT_LE(numerics["worst_gradient_error"], 1e-4);
  EXPECT_EQ(numerics["losses"].size(), 3);
  EXPECT_GT(numerics["gradients"].size(), 40);
  // It learns: otherwise equal losses would mean little.
  EXPECT_NE(numerics["losses"][0], numerics["losses"][2]);
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, MpiNumericsTest,
    ::testing::Values(std::pair("pp2_megatron", 2), std::pair("pp2_balanced", 2),
                      std::pair("pp2_optimus", 2), std::pair("pp2_zb_h1", 2),
                      std::pair("pp2_zb_v", 2), std::pair("tp2_megatron", 2),
                      std::pair("tp2_balanced", 2), std::pair("tp2_optimus", 2),
                      std::pair("dp2_megatron", 2), std::pair("dp2_balanced", 2),
                      std::pair("dp2_optimus", 2), std::pair("8_megatron", 8),
                      std::pair("8_balanced", 8), std::pair("8_optimus", 8)),
    [](const auto& info) { return std::string(info.param.first); });

TEST_F(MpiRunTest, NumericsOutsideTheToleranceExitsWithTwo) {
  const Json json =
      JsonOfRanks(2,
                  "run examples/cpu/numerics_pp2_megatron.textproto --backend=cpu --numerics "
                  "--iterations=1 --warmup=0 --tolerance=0",
                  /*exit_code=*/2);
  EXPECT_EQ(json["numerics"]["within_tolerance"], false);
}

}  // namespace
}  // namespace optimus::tools
