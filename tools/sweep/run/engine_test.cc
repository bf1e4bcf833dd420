#include "tools/sweep/run/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/files.h"
#include "tools/sweep/spec/testing_files.h"
#include "tools/sweep/store/schema.h"

namespace optimus::sweep {
namespace {

using ::testing::HasSubstr;

constexpr char kAxes[] = "axes { field: 'batch.global_batch' range { from: 4 to: 48 step: 4 } }";

PointOutcome Good(const Point& point) {
  PointOutcome outcome;
  outcome.set_status(kStatusOk);
  for (std::size_t i = 0; i < MetricColumns().size(); ++i) outcome.add_metrics();
  outcome.mutable_metrics(0)->set_real(0.5 * point.experiment.batch().global_batch());
  return outcome;
}

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() {
    options_.database = files_.Path("r.sqlite");
    options_.workers = 2;
    options_.evaluate = Good;
  }
  absl::StatusOr<EngineResult> Run(const std::string& axes = kAxes) {
    LoadedSweep sweep = files_.Load(axes).value();
    return RunSweep(sweep, options_);
  }
  SqlTable Rows(const std::string& columns) const {
    return Database::Open(options_.database, Database::Mode::kReadOnly)
        ->Query("SELECT " + columns + " FROM sweep ORDER BY point")
        .value();
  }
  // Statuses by point, "" where there is none.
  std::string Statuses() const {
    std::string text;
    for (const auto& row : Rows("status").rows) text += ToText(row[0]).substr(0, 1) + " ";
    return text;
  }
  TestingSweepFiles files_;
  EngineOptions options_;
};

TEST_F(EngineTest, EveryPointHasItsRow) {
  const EngineResult result = Run().value();
  EXPECT_EQ(result.simulated, 12);
  EXPECT_EQ(result.counts.ok, 12);
  const SqlTable rows = Rows("point, global_batch, iteration_time_s, status, version");
  ASSERT_EQ(rows.rows.size(), 12);
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const auto batch = static_cast<std::int64_t>(4 * (i + 1));
    EXPECT_EQ(rows.rows[i],
              (std::vector<SqlValue>{static_cast<std::int64_t>(i), batch,
                                     0.5 * static_cast<double>(batch), std::string("ok"),
                                     std::string(OPTIMUS_VERSION)}));
  }
}

TEST_F(EngineTest, AnExistingDatabaseNeedsResume) {
  ASSERT_TRUE(Run().ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Run().status()));
  options_.resume = true;
  options_.evaluate = [](const Point& /*point*/) -> PointOutcome {
    raise(SIGKILL);
    return {};
  };
  const EngineResult again = Run().value();
  EXPECT_EQ(again.simulated, 0);
  EXPECT_EQ(again.found, 12);
  EXPECT_EQ(again.counts.ok, 12);
}

TEST_F(EngineTest, ResumeRefusesAnotherSweepOrShard) {
  ASSERT_TRUE(Run().ok());
  options_.resume = true;
  const absl::Status other = Run("axes { field: 'batch.global_batch' numbers: 4 }").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(other));
  EXPECT_THAT(std::string(other.message()), HasSubstr("another sweep"));
  options_.shard = {0, 5};
  EXPECT_THAT(std::string(Run().status().message()), HasSubstr("shard 0/5"));
}

TEST_F(EngineTest, WhatFailsIsARowAndTriedAgain) {
  options_.limits.wall_s = 1;
  options_.evaluate = [](const Point& point) -> PointOutcome {
    const int batch = point.experiment.batch().global_batch();
    if (batch == 8) raise(SIGKILL);
    if (batch == 12) std::this_thread::sleep_for(std::chrono::hours(1));
    if (batch == 16) {
      PointOutcome outcome;
      outcome.set_status(kStatusImpossible);
      outcome.set_error("no room");
      return outcome;
    }
    if (batch == 20) throw std::bad_alloc();
    return Good(point);
  };
  const EngineResult result = Run().value();
  EXPECT_EQ(Statuses(), "o f t i o o o o o o o o ");
  EXPECT_EQ(result.counts.failed, 1);
  EXPECT_EQ(result.counts.timeout, 1);
  EXPECT_EQ(result.counts.out_of_memory, 1);
  options_.resume = true;
  options_.evaluate = Good;
  const EngineResult again = Run().value();
  EXPECT_EQ(again.simulated, 3);  // "no room" is a result
  EXPECT_EQ(Statuses(), "o o o i o o o o o o o o ");
}

// A process that somebody kills is started again: nothing of it is left in the table.
TEST_F(EngineTest, OneKillIsForgiven) {
  const std::string marker = files_.Path("killed");
  options_.evaluate = [marker](const Point& point) -> PointOutcome {
    if (point.number == 3 && access(marker.c_str(), F_OK) != 0) {
      std::ofstream(marker) << "x";
      raise(SIGKILL);
    }
    return Good(point);
  };
  EXPECT_EQ(Run()->counts.ok, 12);
  EXPECT_EQ(Statuses(), "o o o o o o o o o o o o ");
}

TEST_F(EngineTest, EqualPointsAreSimulatedOnce) {
  const EngineResult result = Run("strategies { name: 'a' } strategies { name: 'b' "
                                  "settings { field: 'name' value: 'x' } }" +
                                  std::string(kAxes))
                                  .value();
  EXPECT_EQ(result.simulated, 12);
  EXPECT_EQ(result.counts.ok, 24);
}

TEST_F(EngineTest, ImpossiblePointsAreRowsToo) {
  const EngineResult result =
      Run("axes { field: 'plan.pipeline_parallel' numbers: [4, 3] }").value();
  EXPECT_EQ(result.simulated, 1);
  EXPECT_EQ(Statuses(), "o i ");
  EXPECT_THAT(ToText(Rows("error").rows[1][0]), HasSubstr("hardware.gpus"));
}

TEST_F(EngineTest, StoppedAnywhereItGoesOn) {
  for (int i = 0; i < 3; ++i) {
    options_.resume = true;
    std::int64_t done = 0;
    options_.progress = [&](const EngineProgress& progress) { done = progress.done; };
    options_.stop = [&] { return done >= 3; };
    EXPECT_TRUE(absl::IsCancelled(Run().status()));
    EXPECT_GE(done, 3);
  }
  options_.stop = nullptr;
  options_.progress = nullptr;
  EXPECT_EQ(Run()->counts.ok, 12);
}

TEST_F(EngineTest, ReportsAreKeptWhereAskedFor) {
  options_.evaluate = [](const Point& point) {
    PointOutcome outcome = Good(point);
    outcome.set_report("{}");
    return outcome;
  };
  ASSERT_TRUE(Run("keep: REPORTS " + std::string(kAxes)).ok());
  EXPECT_EQ(ToText(Rows("report").rows[0][0]), "{}");
}

// As on a full disk: what was written before stays and can be read.
TEST_F(EngineTest, NoRoomEndsWithAReadableDatabase) {
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, SIG_IGN);
  options_.evaluate = [](const Point& point) {
    PointOutcome outcome = Good(point);
    outcome.set_report(std::string(100'000, 'x'));
    return outcome;
  };
  const rlimit small{600'000, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const absl::Status status = Run("keep: REPORTS " + std::string(kAxes)).status();
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("r.sqlite"), HasSubstr("--resume")));
  const std::string before = Statuses();
  EXPECT_THAT(before, HasSubstr("o"));
  EXPECT_NE(before, "o o o o o o o o o o o o ");
  options_.resume = true;
  EXPECT_EQ(Run("keep: REPORTS " + std::string(kAxes))->counts.ok, 12);
}

TEST_F(EngineTest, AnInterruptInTheSurveyLeavesNothing) {
  options_.stop = [] { return true; };
  EXPECT_TRUE(absl::IsCancelled(Run().status()));
  EXPECT_FALSE(std::filesystem::exists(options_.database));
}

TEST_F(EngineTest, ForeignDatabasesAreNotTouched) {
  for (const char* sql : {"CREATE TABLE t(a)", "PRAGMA user_version = 7"}) {
    std::filesystem::remove(options_.database);
    ASSERT_TRUE(Database::Open(options_.database, Database::Mode::kCreate)->Execute(sql).ok());
    const std::string before = ReadFile(options_.database).value();
    options_.resume = true;
    const absl::Status status = Run().status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("not a database of optimus sweep"));
    EXPECT_EQ(ReadFile(options_.database).value(), before);
  }
}

TEST_F(EngineTest, DevicesAreRefusedAndStay) {
  options_.database = "/dev/null";
  EXPECT_TRUE(absl::IsInvalidArgument(Run().status()));
  EXPECT_TRUE(std::filesystem::exists("/dev/null"));
}

TEST_F(EngineTest, ResumeSeesADamagedTableOfPoints) {
  ASSERT_TRUE(Run().ok());
  options_.resume = true;
  {
    const Database database = Database::Open(options_.database, Database::Mode::kReadWrite).value();
    ASSERT_TRUE(database.Execute("UPDATE points SET global_batch = 5 WHERE point = 3").ok());
  }
  EXPECT_THAT(std::string(Run().status().message()), HasSubstr("damaged (point 3)"));
  {
    const Database database = Database::Open(options_.database, Database::Mode::kReadWrite).value();
    ASSERT_TRUE(database.Execute("DELETE FROM points WHERE point = 3").ok());
  }
  EXPECT_THAT(std::string(Run().status().message()), HasSubstr("damaged (point 3)"));
}

TEST_F(EngineTest, TwoSweepsDoNotShareADatabase) {
  LoadedSweep inner = files_.Load(kAxes).value();
  bool asked = false;
  options_.surveyed = [&](const Survey& /*survey*/) {
    EngineOptions second = options_;
    second.resume = true;
    second.surveyed = nullptr;
    asked = true;
    const absl::Status status = RunSweep(inner, second).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("another sweep is writing"));
  };
  ASSERT_TRUE(Run().ok());
  EXPECT_TRUE(asked);
}

}  // namespace
}  // namespace optimus::sweep
