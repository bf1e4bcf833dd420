// Collectives and messages over MPI through the streams of a device, for two ranks and more:
//   mpirun -np 2 --bind-to core mpi_benchmark [MICROSECONDS_BETWEEN_POLLS]
// Medians, microseconds. Beside each collective what the library's own non-blocking one takes,
// polled without a pause.

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "base/quantile.h"
#include "executor/mpi/exchange_plan.h"
#include "executor/mpi/mpi_communicator.h"
#include "executor/mpi/mpi_world.h"
#include "executor/mpi/testing.h"

namespace optimus::executor {
namespace {

constexpr int kRepetitions = 41;
constexpr ir::Stream kStream = ir::Stream::kTensorParallel;

// Of `enqueue`, behind each other within one step; the first ones are not counted.
double OwnMicroseconds(MpiWorld& world, TransferDevice& device,
                       const std::function<absl::Status()>& enqueue) {
  constexpr int kWarmUp = 5;
  absl::Status status = device.Begin();
  for (int i = 0; i < kWarmUp + kRepetitions && status.ok(); ++i) {
    device.Record(kStream, 2 * i);
    status = enqueue();
    device.Record(kStream, 2 * i + 1);
  }
  if (status.ok()) status = world.Barrier();
  if (status.ok()) status = device.RunStep();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    world.Abort(1);
  }
  std::vector<double> times;
  for (int i = kWarmUp; i < kWarmUp + kRepetitions; ++i) {
    times.push_back(static_cast<double>(device.TimeNs(2 * i + 1) - device.TimeNs(2 * i)) / 1e3);
  }
  return Median(times);
}

double LibraryMicroseconds(CollectiveKind kind, std::int64_t floats, int size) {
  std::vector<float> in(floats, 1), out(floats, 1);
  const int all = static_cast<int>(floats), part = all / size;
  std::vector<double> times;
  for (int i = 0; i < kRepetitions; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const std::int64_t begin = NowNs();
    MPI_Request request = MPI_REQUEST_NULL;
    const MPI_Comm comm = MPI_COMM_WORLD;
    switch (kind) {
      case CollectiveKind::kAllGather:
        MPI_Iallgather(in.data(), part, MPI_FLOAT, out.data(), part, MPI_FLOAT, comm, &request);
        break;
      case CollectiveKind::kReduceScatter:
        MPI_Ireduce_scatter_block(in.data(), out.data(), part, MPI_FLOAT, MPI_SUM, comm, &request);
        break;
      case CollectiveKind::kAllReduce:
        MPI_Iallreduce(in.data(), out.data(), all, MPI_FLOAT, MPI_SUM, comm, &request);
        break;
      case CollectiveKind::kBroadcast:
        MPI_Ibcast(in.data(), all, MPI_FLOAT, 0, comm, &request);
        break;
      case CollectiveKind::kAllToAll:
        MPI_Ialltoall(in.data(), part, MPI_FLOAT, out.data(), part, MPI_FLOAT, comm, &request);
        break;
    }
    for (int done = 0; done == 0;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    times.push_back(static_cast<double>(NowNs() - begin) / 1e3);
  }
  return Median(times);
}

double MessageMicroseconds(MpiWorld& world, TransferDevice& device, Communicator& ranks,
                           std::int64_t bytes) {
  // There and back, half of it.
  std::vector<MessageCall> calls;
  for (int m = 0; m < 2 * 46; ++m) {
    MessageCall& call = calls.emplace_back();
    call.peer = 1 - world.rank();
    call.message = m;
    call.bytes = Bytes(bytes);
  }
  int next = 0;
  std::vector<MessageCall> expected;
  for (int m = world.rank() == 0 ? 1 : 0; m < 2 * 46; m += 2) expected.push_back(calls[m]);
  const auto enqueue = [&]() -> absl::Status {
    if (next == 0) OPTIMUS_RETURN_IF_ERROR(ranks.Expect(expected));
    for (int way = 0; way < 2; ++way, ++next) {
      const bool sends = way == world.rank();
      OPTIMUS_RETURN_IF_ERROR(sends ? ranks.Send(kStream, calls[next])
                                    : ranks.Receive(kStream, calls[next]));
    }
    return absl::OkStatus();
  };
  return OwnMicroseconds(world, device, enqueue) / 2;
}

int Main(int argc, char** argv) {
  auto world = MpiWorld::Create(argc, argv);
  if (!world.ok()) return 1;
  HostOptions options;
  if (argc > 1) options.poll_idle = absl::Microseconds(std::atoi(argv[1]));
  TransferDevice device(options);
  auto ranks = MakeMpiCommunicator(**world, device);
  if (!ranks.ok() || !device.Prepare(100, 1, {}).ok()) return 1;
  const bool prints = (*world)->rank() == 0;
  const int size = (*world)->size();
  for (std::int64_t bytes = 1 << 10; bytes <= 16 << 20; bytes *= 4) {
    if (prints) std::printf("%9lld bytes:", static_cast<long long>(bytes));
    for (const CollectiveKind kind :
         {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
          CollectiveKind::kBroadcast, CollectiveKind::kAllToAll}) {
      const CollectiveWork work{kind, "benchmark", Bytes(bytes)};
      CollectiveCall call;
      call.work = &work;
      const double own =
          OwnMicroseconds(**world, device, [&] { return (*ranks)->Collective(kStream, call); });
      const double library = LibraryMicroseconds(kind, FloatsFor(kind, Bytes(bytes), size), size);
      if (prints) std::printf("  %s %.1f (%.1f)", ToString(kind), own, library);
    }
    const double message = MessageMicroseconds(**world, device, **ranks, bytes);
    if (prints) std::printf("  message %.1f\n", message);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace optimus::executor

int main(int argc, char** argv) { return optimus::executor::Main(argc, argv); }
