// A world of one rank: everything it agrees on, it agrees with itself.

#include <cstdlib>
#include <deque>
#include <utility>

#include "executor/runtime/this_host.h"
#include "executor/runtime/world.h"

namespace optimus::executor {
namespace {

class SelfWorld : public World {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  std::string host() const override { return HostName(); }
  std::string launcher() const override { return "alone"; }

  void SetPatience(absl::Duration /*patience*/, std::function<absl::Status()> /*tick*/) override {}
  absl::Status Barrier() override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) override {
    return std::vector<std::string>{mine};
  }
  absl::StatusOr<std::string> Broadcast(const std::string& from_rank_0) override {
    return from_rank_0;
  }
  std::int64_t clock_offset_ns() const override { return 0; }

  void Post(int to, const std::string& text) override {
    if (to == 0) notes_.push_back({0, text});
  }
  std::optional<Note> Poll() override {
    if (notes_.empty()) return std::nullopt;
    Note note = std::move(notes_.front());
    notes_.pop_front();
    return note;
  }

  // Nobody else has to be ended. Nothing is cleaned up: threads of a device may be stuck.
  [[noreturn]] void Abort(int exit_code) override { _exit(exit_code); }

 private:
  std::deque<Note> notes_;
};

}  // namespace

std::unique_ptr<World> MakeSelfWorld() { return std::make_unique<SelfWorld>(); }

}  // namespace optimus::executor
