#include "executor/mpi/mpi_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/host/host_device.h"

namespace optimus::executor {
namespace {

constexpr std::int64_t kTickNs = 50'000'000;
constexpr std::int64_t kShortestSleepNs = 5'000, kLongestSleepNs = 200'000;

absl::Status Await(MpiState& state, absl::FunctionRef<absl::StatusOr<bool>()> done,
                   absl::FunctionRef<std::string()> text) {
  const std::int64_t start = NowNs();
  std::int64_t next_tick = start + kTickNs;
  const double patience_ns = absl::ToDoubleNanoseconds(state.patience);
  for (;;) {
    OPTIMUS_ASSIGN_OR_RETURN(const bool is_done, done());
    if (is_done) {
      return absl::OkStatus();
    }
    const std::int64_t now = NowNs();
    if (static_cast<double>(now - start) >= patience_ns) {
      return absl::DeadlineExceededError(
          absl::StrCat(text(), " after ", absl::FormatDuration(state.patience)));
    }
    if (now >= next_tick) {
      next_tick = now + kTickNs;
      if (state.tick) OPTIMUS_RETURN_IF_ERROR(state.tick());
    }
    SleepUntilNs(now + std::clamp((now - start) / 8, kShortestSleepNs, kLongestSleepNs));
  }
}

}  // namespace

absl::Status AwaitMpi(MpiState& state, absl::FunctionRef<absl::StatusOr<bool>()> done,
                      absl::FunctionRef<std::string()> text) {
  absl::Status result = Await(state, done, text);
  if (!result.ok()) {
    state.failed.store(true, std::memory_order_relaxed);
  }
  return result;
}

}  // namespace optimus::executor
