#include "executor/mpi/mpi_world.h"

#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "executor/mpi/mpi_state.h"
#include "executor/mpi/notes.h"
#include "executor/mpi/world_calls.h"
#include "executor/mpi/world_setup.h"
#include "executor/runtime/this_host.h"

namespace optimus::executor {

class MpiWorld::Impl {
 public:
  MpiState state;
  std::optional<WorldCalls> calls;
  std::optional<Notes> notes;

  // Calls of ranks are counted: after one that failed they no longer go together.
  absl::Status CheckUsable() const {
    if (state.failed.load(std::memory_order_relaxed)) {
      return absl::FailedPreconditionError(
          "an earlier call of the world or its communicators failed; end the run");
    }
    return absl::OkStatus();
  }
  template <class Result>
  Result Marked(Result result) {
    if (!result.ok()) state.failed.store(true, std::memory_order_relaxed);
    return result;
  }
};

MpiWorld::MpiWorld(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<MpiWorld>> MpiWorld::Create(int& argc, char**& argv,
                                                           bool measure_all_clocks) {
  auto impl = std::make_unique<Impl>();
  OPTIMUS_RETURN_IF_ERROR(SetUpMpi(argc, argv, measure_all_clocks, impl->state));
  impl->calls.emplace(impl->state);
  impl->notes.emplace(impl->state.notes, impl->state.rank, impl->state.size);
  return std::unique_ptr<MpiWorld>(new MpiWorld(std::move(impl)));
}

MpiWorld::~MpiWorld() {
  if (impl_->state.failed.load(std::memory_order_relaxed)) {
    // Buffers of what is in flight stay: MPI's own threads may look at them until the end.
    (void)impl_.release();
    return;
  }
  MpiState& state = impl_->state;
  for (MPI_Comm* each : {&state.calls, &state.notes, &state.messages, &state.groups, &state.node}) {
    MPI_Comm_free(each);
  }
  MPI_Finalize();
}

int MpiWorld::rank() const { return impl_->state.rank; }
int MpiWorld::size() const { return impl_->state.size; }
int MpiWorld::local_rank() const { return impl_->state.local_rank; }
int MpiWorld::local_size() const { return impl_->state.local_size; }

std::string MpiWorld::host() const { return HostName(); }

std::string MpiWorld::launcher() const { return "mpi"; }

void MpiWorld::SetPatience(absl::Duration patience, std::function<absl::Status()> tick) {
  impl_->state.patience = patience;
  impl_->state.tick = std::move(tick);
}

absl::Status MpiWorld::Barrier() {
  OPTIMUS_RETURN_IF_ERROR(impl_->CheckUsable());
  return impl_->Marked(impl_->calls->Barrier());
}

absl::StatusOr<std::vector<std::string>> MpiWorld::Gather(const std::string& mine) {
  OPTIMUS_RETURN_IF_ERROR(impl_->CheckUsable());
  return impl_->Marked(impl_->calls->Gather(mine));
}

absl::StatusOr<std::string> MpiWorld::Broadcast(const std::string& from_rank_0) {
  OPTIMUS_RETURN_IF_ERROR(impl_->CheckUsable());
  return impl_->Marked(impl_->calls->Broadcast(from_rank_0));
}

std::int64_t MpiWorld::clock_offset_ns() const { return impl_->state.clock_offset_ns; }
void MpiWorld::Post(int to, const std::string& text) { impl_->notes->Post(to, text); }
std::optional<World::Note> MpiWorld::Poll() { return impl_->notes->Poll(); }
MpiState& MpiWorld::state() { return impl_->state; }

void MpiWorld::Abort(int exit_code) {
  std::fflush(stdout);
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  _exit(exit_code);  // should MPI have returned
}

// The first words of what the library says of itself: "Open MPI v4.1.4, package: ...".
std::string MpiLibrary() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) {
    return "MPI";
  }
  const std::string all(text.data(), static_cast<std::size_t>(length));
  std::string line = all.substr(0, all.find_first_of(",\n"));
  if (absl::StartsWith(line, "Open MPI v")) line.erase(9, 1);
  return line;
}

}  // namespace optimus::executor
