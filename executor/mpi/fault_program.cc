// A rank of a run in which something goes wrong, started by mpirun from faults_test.cc: prints what
// it was told ("rank 1: DATA_LOSS: ...") and ends all ranks.

#include <csignal>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "executor/mpi/mpi_communicator.h"
#include "executor/mpi/mpi_world.h"
#include "executor/mpi/testing.h"
#include "executor/mpi/wire.h"

namespace optimus::executor {
namespace {

constexpr ir::Stream kStream = ir::Stream::kTensorParallel;

struct Rank {
  MpiWorld& world;
  TransferDevice device;
  std::unique_ptr<Communicator> ranks;
  StampText text = [](const Stamp& stamp) {
    return absl::StrCat("rank ", stamp.rank, " does op", stamp.operation);
  };

  explicit Rank(MpiWorld& mpi_world) : world(mpi_world) {}
  absl::Status Start() {
    OPTIMUS_ASSIGN_OR_RETURN(ranks, MakeMpiCommunicator(world, device));
    OPTIMUS_RETURN_IF_ERROR(device.Prepare(4, 4, {}));
    return device.Begin();
  }
  Stamp MyStamp(int operation, int micro_batch) const {
    Stamp stamp;
    stamp.rank = world.rank();
    stamp.operation = operation;
    stamp.step = 0;
    stamp.micro_batch = micro_batch;
    return stamp;
  }
  absl::Status Collective(CollectiveKind kind, Bytes bytes, int operation, int micro_batch,
                          absl::Duration patience = absl::Seconds(20)) {
    OPTIMUS_RETURN_IF_ERROR(Start());
    const CollectiveWork work{kind, "work", bytes};
    CollectiveCall call;
    call.work = &work;
    call.stamp = MyStamp(operation, micro_batch);
    call.text = &text;
    OPTIMUS_RETURN_IF_ERROR(ranks->Collective(kStream, call));
    absl::Status ran = device.RunStep(patience);
    device.GiveUp();  // `work` ends here
    return ran;
  }
};

absl::Status OtherMicroBatch(Rank& rank) {
  return rank.Collective(CollectiveKind::kAllReduce, Bytes(1 << 20), 10 + rank.world.rank(),
                         rank.world.rank());
}

// Rank 1 waits for more than the others send, and for another kind.
absl::Status OtherKind(Rank& rank) {
  const bool one = rank.world.rank() == 1;
  return rank.Collective(one ? CollectiveKind::kAllReduce : CollectiveKind::kAllGather,
                         Bytes(one ? 10'000 : 3'000'000), 10 + rank.world.rank(), 0);
}

absl::Status WrongMessage(Rank& rank) {
  OPTIMUS_RETURN_IF_ERROR(rank.Start());
  MessageCall call;
  call.peer = 1 - rank.world.rank();
  call.message = 5;
  call.bytes = Bytes(100'000);
  call.stamp = rank.MyStamp(rank.world.rank() == 0 ? 77 : 88, 0);
  call.text = &rank.text;
  if (rank.world.rank() == 0) {
    OPTIMUS_RETURN_IF_ERROR(rank.ranks->Send(kStream, call));
  } else {
    call.stamp.rank = 0;
    OPTIMUS_RETURN_IF_ERROR(rank.ranks->Expect({call}));
    OPTIMUS_RETURN_IF_ERROR(rank.ranks->Receive(kStream, call));
  }
  OPTIMUS_RETURN_IF_ERROR(rank.device.RunStep());
  return rank.world.rank() == 0 ? rank.world.Barrier() : absl::OkStatus();
}

absl::Status NotExpected(Rank& rank) {
  OPTIMUS_RETURN_IF_ERROR(rank.Start());
  MessageCall call;
  call.peer = 1 - rank.world.rank();
  call.message = 5;
  call.text = &rank.text;
  OPTIMUS_RETURN_IF_ERROR(rank.ranks->Receive(kStream, call));
  return rank.device.RunStep();
}

absl::Status OneDoesNotCome(Rank& rank) {
  rank.world.SetPatience(absl::Milliseconds(300), nullptr);
  if (rank.world.rank() == 1) {
    SleepUntilNs(NowNs() + 10'000'000'000);
  }
  return rank.world.Barrier();
}

absl::Status TickStops(Rank& rank) {
  rank.world.SetPatience(absl::Seconds(60),
                         [] { return absl::CancelledError("the tick says stop"); });
  if (rank.world.rank() == 1) {
    SleepUntilNs(NowNs() + 10'000'000'000);
  }
  return rank.world.Gather("x").status();
}

absl::Status OtherCall(Rank& rank) {
  if (rank.world.rank() == 0) {
    OPTIMUS_RETURN_IF_ERROR(rank.world.Barrier());
  }
  return rank.world.Gather("x").status();
}

absl::Status OtherSplit(Rank& rank) {
  OPTIMUS_RETURN_IF_ERROR(rank.Start());
  return rank.ranks->Split({0, 1}, rank.world.rank() == 0 ? "dp" : "tp").status();
}

// As a rank that is gone: it answers nothing. The other one leaves without MPI_Finalize.
absl::Status OneStops(Rank& rank) {
  if (rank.world.rank() == 1) {
    OPTIMUS_RETURN_IF_ERROR(rank.Start());
    std::raise(SIGSTOP);
  }
  return rank.Collective(CollectiveKind::kAllReduce, Bytes(1 << 20), 4, 0, absl::Seconds(1));
}

int Main(int argc, char** argv) {
  const std::map<std::string, std::function<absl::Status(Rank&)>> faults = {
      {"other_micro_batch", OtherMicroBatch},
      {"other_kind", OtherKind},
      {"wrong_message", WrongMessage},
      {"not_expected", NotExpected},
      {"one_does_not_come", OneDoesNotCome},
      {"tick_stops", TickStops},
      {"other_call", OtherCall},
      {"other_split", OtherSplit},
      {"one_stops", OneStops},
  };
  auto world = MpiWorld::Create(argc, argv);
  if (!world.ok() || argc < 2 || faults.count(argv[1]) == 0) {
    std::cerr << "usage: mpirun -np 2 fault_program FAULT\n";
    return 1;
  }
  (*world)->SetPatience(absl::Seconds(20), nullptr);
  absl::Status status;
  {
    Rank rank(**world);
    status = faults.at(argv[1])(rank);
    std::cerr << absl::StrCat("rank ", (*world)->rank(), ": ", status.ToString(), "\n");
  }
  if (std::string(argv[1]) == "one_stops") {
    return 3;
  }
  // Time for the other rank to say what it was told.
  SleepUntilNs(NowNs() + 500'000'000);
  (*world)->Abort(3);
  return 3;  // GCC does not see that a virtual function never returns
}

}  // namespace
}  // namespace optimus::executor

int main(int argc, char** argv) { return optimus::executor::Main(argc, argv); }
