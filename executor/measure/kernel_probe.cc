#include "executor/measure/probes.h"
#include "executor/measure/schedule_writer.h"

namespace optimus::executor {

// Each depends on the one before it, as in a program: then its stamp is checked as there.
KernelProbe MakeKernelProbe(absl::Span<const Kernel> kernels, int repetitions, ProbeWorld world) {
  ScheduleWriter writer("measure kernels", {.dp = world.ranks}, world.ranks_per_node);
  std::vector<std::int32_t> works;
  for (const Kernel& kernel : kernels) works.push_back(writer.AddWork(kernel));
  std::uint32_t last = writer.AddKernel(0, writer.moment());
  for (int repetition = 0; repetition <= repetitions; ++repetition) {
    writer.SetRepetition(repetition);
    for (const std::int32_t work : works) last = writer.AddKernel(0, work, {last});
  }
  return {writer.Take(), static_cast<int>(works.size()), repetitions};
}

Series ReadKernels(const KernelProbe& probe, const StepTimes& times) {
  Series series(static_cast<std::size_t>(probe.kernels));
  std::size_t id = 1 + static_cast<std::size_t>(probe.kernels);  // after the warm-up
  for (int repetition = 1; repetition <= probe.repetitions; ++repetition) {
    for (std::vector<double>& samples : series) {
      double sum = 0;
      for (const std::vector<OperationTime>& rank : times) {
        sum += static_cast<double>(rank[id].end_ns - rank[id - 1].end_ns);
      }
      samples.push_back(sum / static_cast<double>(times.size()));
      ++id;
    }
  }
  return series;
}

}  // namespace optimus::executor
