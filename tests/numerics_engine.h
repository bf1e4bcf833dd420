#pragma once
// Runs the ranks' workloads of a Schedule in one thread, one operation at a time, in an order drawn
// at random from all that the Schedule allows. It keeps nothing but what the Schedule says: what
// comes out under every order does not depend on luck.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "executor/runtime/workload.h"
#include "schedule/ir/schedule.h"

namespace optimus::testing {

class NumericsEngine {
 public:
  // Put off as long as anything else can run.
  using PutOff = std::function<bool(int rank, std::uint32_t operation)>;

  NumericsEngine(const ir::Schedule& schedule, std::vector<executor::Workload*> ranks,
                 std::uint32_t seed)
      : schedule_(schedule), workloads_(std::move(ranks)), random_(seed) {}
  void SetPutOff(PutOff put_off) { put_off_ = std::move(put_off); }
  // In the last step: did `operation` of this rank start before `other` had ended?
  bool StartedBefore(int rank, std::uint32_t operation, std::uint32_t other) const {
    return ranks_[rank].start_time[operation] < ranks_[rank].end_time[other];
  }

  // The first error of a kernel; FAILED_PRECONDITION where nothing can run any more.
  absl::Status Step(int step);

 private:
  struct RankState {
    const ir::Program* program = nullptr;
    int stage = 0, d = 0, t = 0;
    std::array<std::vector<std::uint32_t>, ir::kStreamCount> streams;
    std::array<std::size_t, ir::kStreamCount> next{};
    std::vector<char> started, ended;
    std::vector<int> start_time, end_time;  // steps of the engine
    std::map<std::int32_t, int> issued;     // collectives, by group
  };
  struct Member {
    int rank = 0;
    std::uint32_t operation = 0;
    executor::Payload payload;
    std::vector<float> input;
  };
  // Group, first rank of its instance, how-many-th.
  using Meeting = std::tuple<std::int32_t, std::int32_t, int>;
  struct Message {
    std::vector<float> data;
    bool arrived = false;
  };
  // Destination rank, message.
  using Address = std::pair<int, std::int32_t>;

  void Reset();
  bool MayStart(int rank, std::uint32_t id) const;
  bool MayEnd(int rank, std::uint32_t id) const;
  absl::Status StartOperation(int rank, std::uint32_t id);
  absl::Status EndOperation(int rank, std::uint32_t id);
  absl::Status EndCollective(const Meeting& meeting);
  std::vector<std::int32_t> MembersOf(int rank, const ir::Operation& op) const;
  Address AddressOf(int rank, const ir::Operation& op) const;
  const ir::Operation& At(int rank, std::uint32_t id) const {
    return ranks_[rank].program->operations[id];
  }

  const ir::Schedule& schedule_;
  std::vector<executor::Workload*> workloads_;
  std::mt19937 random_;
  PutOff put_off_;
  int time_ = 0;
  std::vector<RankState> ranks_;
  std::map<Meeting, std::vector<Member>> meetings_;
  std::map<std::pair<int, std::uint32_t>, Meeting> meeting_of_;
  std::map<Address, Message> messages_;
  std::map<std::pair<int, std::uint32_t>, executor::Payload> payloads_;
};

}  // namespace optimus::testing
