#include "executor/mpi/world_calls.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "executor/host/host_device.h"
#include "executor/mpi/mpi_status.h"

namespace optimus::executor {
namespace {

constexpr int kHeaderTag = 1, kTextTag = 2;

struct CallHeader {
  WorldCalls::Kind kind = WorldCalls::Kind::kBarrier;
  std::int32_t number = 0;
  std::int64_t bytes = 0;
};

const char* Name(WorldCalls::Kind kind) {
  switch (kind) {
    case WorldCalls::Kind::kBarrier:
      return "Barrier";
    case WorldCalls::Kind::kGather:
      return "Gather";
    case WorldCalls::Kind::kBroadcast:
      return "Broadcast";
  }
  return "an unknown call";
}

std::string Describe(const CallHeader& header) {
  return absl::StrCat(Name(header.kind), " (call ", header.number, " of the world)");
}

// A text on its way to one rank.
struct Sending {
  CallHeader header;
  std::string text;
  std::array<MPI_Request, 2> requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

  absl::Status Start(MPI_Comm comm, int to) {
    OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Isend, &header, sizeof header, MPI_BYTE, to, kHeaderTag, comm,
                                requests.data());
    if (text.empty()) {
      return absl::OkStatus();
    }
    return MpiStatus(MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_BYTE, to, kTextTag,
                               comm, &requests[1]),
                     "MPI_Isend");
  }
  absl::StatusOr<bool> Done() {
    int done = 0;
    OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Testall, 2, requests.data(), &done, MPI_STATUSES_IGNORE);
    return done != 0;
  }
};

// A text from one rank: first its header, then as many bytes as that says.
struct Receiving {
  CallHeader expected;
  int from = 0;
  CallHeader header;
  std::string text;
  bool has_header = false, done = false;
  MPI_Request request = MPI_REQUEST_NULL;

  absl::Status Start(MPI_Comm comm) {
    return MpiStatus(MPI_Irecv(&header, sizeof header, MPI_BYTE, from, kHeaderTag, comm, &request),
                     "MPI_Irecv");
  }
  absl::StatusOr<bool> Done(MPI_Comm comm, int rank) {
    while (!done) {
      int arrived = 0;
      OPTIMUS_RETURN_IF_MPI_ERROR(MPI_Test, &request, &arrived, MPI_STATUS_IGNORE);
      if (arrived == 0) {
        return false;
      }
      done = has_header || header.bytes == 0;
      if (!has_header) OPTIMUS_RETURN_IF_ERROR(TakeHeader(comm, rank));
    }
    return true;
  }

 private:
  absl::Status TakeHeader(MPI_Comm comm, int rank) {
    has_header = true;
    if (header.kind != expected.kind || header.number != expected.number) {
      return absl::InternalError(absl::StrCat(
          "rank ", from, " is in ", Describe(header), " while rank ", rank, " is in ",
          Describe(expected), "; hint: all ranks must be started with the same arguments"));
    }
    if (header.bytes == 0) {
      return absl::OkStatus();
    }
    text.resize(static_cast<std::size_t>(header.bytes));
    return MpiStatus(MPI_Irecv(text.data(), static_cast<int>(header.bytes), MPI_BYTE, from,
                               kTextTag, comm, &request),
                     "MPI_Irecv");
  }
};

absl::Status CheckSize(const std::string& text) {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    return absl::InvalidArgumentError(
        absl::StrCat("a text of ", text.size(), " bytes is too long for one message (2 GiB)"));
  }
  return absl::OkStatus();
}

std::string RanksWithout(const std::vector<Receiving>& from) {
  std::vector<int> missing;
  for (const Receiving& each : from) {
    if (!each.done) missing.push_back(each.from);
  }
  return absl::StrCat(missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "));
}

// All of them, tested once.
template <class Each, class IsDone>
absl::StatusOr<bool> AllDone(std::vector<Each>& all, IsDone is_done) {
  bool done = true;
  for (Each& each : all) {
    OPTIMUS_ASSIGN_OR_RETURN(const bool one, is_done(each));
    done &= one;
  }
  return done;
}

// After a failure MPI may still write there: left alone for good.
template <class T>
void LeaveAlone(std::unique_ptr<T> buffers) {
  (void)buffers.release();
}

}  // namespace

absl::Status WorldCalls::ToRankZero(Kind kind, const std::string& mine) {
  OPTIMUS_RETURN_IF_ERROR(CheckSize(mine));
  auto sending = std::make_unique<Sending>();
  sending->header = {kind, calls_, static_cast<std::int64_t>(mine.size())};
  sending->text = mine;
  OPTIMUS_RETURN_IF_ERROR(sending->Start(state_.calls, 0));
  absl::Status result = AwaitMpi(
      state_, [&] { return sending->Done(); },
      [&] { return absl::StrCat(Name(kind), ": rank 0 has not taken it"); });
  if (!result.ok()) LeaveAlone(std::move(sending));
  return result;
}

absl::StatusOr<std::vector<std::string>> WorldCalls::AtRankZero(Kind kind,
                                                                const std::string& mine) {
  auto from = std::make_unique<std::vector<Receiving>>(static_cast<std::size_t>(state_.size - 1));
  for (std::size_t i = 0; i < from->size(); ++i) {
    (*from)[i].from = static_cast<int>(i) + 1;
    (*from)[i].expected = {kind, calls_, 0};
    OPTIMUS_RETURN_IF_ERROR((*from)[i].Start(state_.calls));
  }
  const auto one_done = [&](Receiving& each) { return each.Done(state_.calls, 0); };
  absl::Status result = AwaitMpi(
      state_, [&] { return AllDone(*from, one_done); },
      [&] { return absl::StrCat(Name(kind), ": no answer from ", RanksWithout(*from)); });
  if (!result.ok()) {
    LeaveAlone(std::move(from));
    return result;
  }
  std::vector<std::string> texts = {mine};
  for (Receiving& each : *from) texts.push_back(std::move(each.text));
  return texts;
}

absl::Status WorldCalls::FromRankZero(Kind kind, const std::string& text) {
  OPTIMUS_RETURN_IF_ERROR(CheckSize(text));
  auto to = std::make_unique<std::vector<Sending>>(static_cast<std::size_t>(state_.size - 1));
  for (std::size_t i = 0; i < to->size(); ++i) {
    Sending& each = (*to)[i];
    each.header = {kind, calls_, static_cast<std::int64_t>(text.size())};
    each.text = text;
    OPTIMUS_RETURN_IF_ERROR(each.Start(state_.calls, static_cast<int>(i) + 1));
  }
  absl::Status result = AwaitMpi(
      state_, [&] { return AllDone(*to, [](Sending& each) { return each.Done(); }); },
      [&] { return absl::StrCat(Name(kind), ": some ranks have not taken what rank 0 sent"); });
  if (!result.ok()) LeaveAlone(std::move(to));
  return result;
}

absl::StatusOr<std::string> WorldCalls::OfRankZero(Kind kind) {
  auto receiving = std::make_unique<Receiving>();
  receiving->expected = {kind, calls_, 0};
  OPTIMUS_RETURN_IF_ERROR(receiving->Start(state_.calls));
  absl::Status result = AwaitMpi(
      state_, [&] { return receiving->Done(state_.calls, state_.rank); },
      [&] { return absl::StrCat(Name(kind), ": no answer from rank 0"); });
  if (!result.ok()) {
    LeaveAlone(std::move(receiving));
    return result;
  }
  return std::move(receiving->text);
}

// Waiting ranks look seldom, so they would leave up to 200 us apart. Rank 0 therefore says when to
// leave, some later than all will have looked.
absl::Status WorldCalls::Barrier() {
  constexpr std::int64_t kNoticeNs = 300'000, kLongestWaitNs = 10'000'000;
  ++calls_;
  std::int64_t leave_ns = 0;
  std::string text(sizeof leave_ns, '\0');
  if (state_.rank == 0) {
    OPTIMUS_RETURN_IF_ERROR(AtRankZero(Kind::kBarrier, "").status());
    leave_ns = NowNs() + (state_.size > 1 ? kNoticeNs : 0);
    std::memcpy(text.data(), &leave_ns, sizeof leave_ns);
    OPTIMUS_RETURN_IF_ERROR(FromRankZero(Kind::kBarrier, text));
  } else {
    OPTIMUS_RETURN_IF_ERROR(ToRankZero(Kind::kBarrier, ""));
    OPTIMUS_ASSIGN_OR_RETURN(text, OfRankZero(Kind::kBarrier));
    std::memcpy(&leave_ns, text.data(), sizeof leave_ns);
    leave_ns -= state_.clock_offset_ns;
  }
  SleepUntilNs(std::min(leave_ns, NowNs() + kLongestWaitNs));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> WorldCalls::Gather(const std::string& mine) {
  ++calls_;
  if (state_.rank == 0) {
    return AtRankZero(Kind::kGather, mine);
  }
  OPTIMUS_RETURN_IF_ERROR(ToRankZero(Kind::kGather, mine));
  return std::vector<std::string>();
}

absl::StatusOr<std::string> WorldCalls::Broadcast(const std::string& from_rank_0) {
  ++calls_;
  if (state_.rank == 0) {
    OPTIMUS_RETURN_IF_ERROR(FromRankZero(Kind::kBroadcast, from_rank_0));
    return from_rank_0;
  }
  return OfRankZero(Kind::kBroadcast);
}

}  // namespace optimus::executor
