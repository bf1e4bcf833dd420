#include "executor/cuda/agree.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::executor::cuda {
namespace {

// One rank of a world whose other ranks have given their texts.
class FixedWorld : public World {
 public:
  FixedWorld(int rank, std::vector<std::string> others) : rank_(rank), texts_(std::move(others)) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(texts_.size()); }
  int local_rank() const override { return rank_; }
  int local_size() const override { return size(); }
  std::string host() const override { return "here"; }
  std::string launcher() const override { return "test"; }
  void SetPatience(absl::Duration, std::function<absl::Status()>) override {}
  absl::Status Barrier() override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) override {
    texts_[static_cast<std::size_t>(rank_)] = mine;
    return rank_ == 0 ? texts_ : std::vector<std::string>();
  }
  absl::StatusOr<std::string> Broadcast(const std::string& text) override {
    return rank_ == 0 ? text : from_rank_0;
  }
  std::int64_t clock_offset_ns() const override { return 0; }
  void Post(int, const std::string&) override {}
  std::optional<Note> Poll() override { return std::nullopt; }
  [[noreturn]] void Abort(int) override { std::abort(); }

  std::string from_rank_0;

 private:
  int rank_;
  std::vector<std::string> texts_;
};

TEST(Agree, OnGood) {
  FixedWorld world(0, {"", "", ""});
  EXPECT_TRUE(Agree(world, absl::OkStatus()).ok());
  FixedWorld other(2, {"", "", ""});
  EXPECT_TRUE(Agree(other, absl::OkStatus()).ok());
}

TEST(Agree, OnTheLowestRanksError) {
  FixedWorld world(0, {"", "14 no GPU found", "8 out of memory"});
  const absl::Status status = Agree(world, absl::OkStatus());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "rank 1: no GPU found");
}

TEST(Agree, HearsFromRank0) {
  FixedWorld world(2, {"", "", ""});
  world.from_rank_0 = "1 14 no GPU found";
  EXPECT_EQ(Agree(world, absl::OkStatus()).message(), "rank 1: no GPU found");
}

TEST(Agree, AloneSaysJustTheError) {
  const std::unique_ptr<World> world = MakeSelfWorld();
  const absl::Status status = Agree(*world, absl::UnavailableError("no GPU found"));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "no GPU found");
}

}  // namespace
}  // namespace optimus::executor::cuda
