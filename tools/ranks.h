#pragma once
// This process as one of the ranks of a run: joining, agreeing, ending. What goes wrong is printed
// once, and ends all ranks with one exit code.

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "executor/backends/backend.h"
#include "executor/runtime/world.h"
#include "executor/watch/guard.h"
#include "executor/watch/watchdog.h"
#include "tools/command.h"

namespace optimus::tools {

class Ranks {
 public:
  // `timeout`: of the watchdog, and of every agreement between ranks from Start on. Where the flag
  // --timeout was given, of ranks that torchrun started to find each other, too; else they have
  // five minutes, since nodes may come late. Ranks of other launchers: see WhileJoining. An
  // OwnError where others may not know of it.
  static absl::StatusOr<std::unique_ptr<Ranks>> Join(executor::BackendKind kind,
                                                     absl::Duration timeout, Arguments& arguments);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  executor::World& world() { return *world_; }
  executor::Watchdog& watchdog() { return *watchdog_; }
  bool first() const { return world_->rank() == 0; }
  // "name" of the hosts, with their ranks: "a (8 ranks), b (8 ranks)". At rank 0.
  const std::string& hosts() const { return hosts_; }

  // The bytes that rank 0 makes, at every rank. However long it takes: only a rank that has ended
  // or is stopped ends the wait. Its error is every rank's.
  absl::StatusOr<std::string> FromFirst(const std::function<absl::StatusOr<std::string>()>& make);
  // An error of any rank is every rank's: that of the lowest.
  absl::Status Agree(const absl::Status& mine);

  // The last call: prints an error where this rank has to, ends all ranks where they did not agree
  // on it, and returns the exit code, which is the same at all ranks. `result`: the exit code of
  // rank 0, which counts for all.
  int End(const absl::StatusOr<int>& result);

 private:
  Ranks() = default;
  absl::Status Setup(absl::Duration timeout);
  [[noreturn]] void EndAll(const absl::Status& error);
  absl::Status WithAllRanks(const absl::Status& error);
  void SetPatience(absl::Duration patience);

  std::unique_ptr<executor::Guard> guard_;  // outlives the world: leaving that may wait for others
  std::unique_ptr<executor::World> world_;
  std::unique_ptr<executor::Watchdog> watchdog_;
  absl::Duration timeout_;
  std::string hosts_;
  bool agreed_ = false;  // on the error that was returned last
};

}  // namespace optimus::tools
