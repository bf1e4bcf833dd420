// Samples to medians and quartiles.

#include <algorithm>
#include <cmath>

#include "base/quantile.h"
#include "executor/measure/measure.h"

namespace optimus::executor {
namespace {

Picoseconds FromNs(double ns) { return Picoseconds(RoundSaturated(std::max(ns, 0.0) * 1000)); }

MeasuredTime TimeOf(const std::vector<double>& samples_ns) {
  MeasuredTime time;
  if (samples_ns.empty()) return time;
  time.median = FromNs(Median(samples_ns));
  time.spread = FromNs(Quantile(samples_ns, 0.75) - Quantile(samples_ns, 0.25));
  time.repetitions = static_cast<std::int32_t>(samples_ns.size());
  return time;
}

// Nothing runs faster for being disturbed.
double FactorOf(const std::vector<double>& samples) {
  if (samples.empty()) return 1;
  return std::max(Median(samples), 1.0);
}

TransferMeasurement SummarizeTransfer(const TransferCase& transfer,
                                      const std::vector<std::vector<double>>& samples) {
  TransferMeasurement measured{transfer.send, transfer.kind, transfer.scope, transfer.group, {}};
  for (std::size_t i = 0; i < transfer.sizes.size() && i < samples.size(); ++i) {
    if (!samples[i].empty()) measured.points.push_back({transfer.sizes[i], TimeOf(samples[i])});
  }
  return measured;
}

}  // namespace

HardwareMeasurements Summarize(const MeasurePlan& plan, const Samples& samples, World& world,
                               const Device& device, const std::string& backend,
                               const std::string& date) {
  HardwareMeasurements measured;
  measured.backend = backend;
  measured.device = device.Description();
  measured.host = world.host();
  measured.date = date;
  measured.ranks = world.size();
  measured.ranks_per_node = world.local_size();
  // The ranks of a node share its RAM, but each has a GPU of its own.
  const std::int64_t sharers = backend == "cuda" ? 1 : std::max(world.local_size(), 1);
  measured.memory = Bytes(device.memory().value() / sharers);
  for (std::size_t i = 0; i < plan.kernels.size() && i < samples.kernels_ns.size(); ++i) {
    if (samples.kernels_ns[i].empty()) continue;
    measured.kernels.push_back({plan.kernels[i], TimeOf(samples.kernels_ns[i])});
  }
  for (std::size_t i = 0; i < plan.transfers.size() && i < samples.transfers_ns.size(); ++i) {
    TransferMeasurement transfer = SummarizeTransfer(plan.transfers[i], samples.transfers_ns[i]);
    if (!transfer.points.empty()) measured.transfers.push_back(std::move(transfer));
  }
  measured.launch = TimeOf(samples.launch_ns);
  measured.interference = {FactorOf(samples.kernel_under_nvlink),
                           FactorOf(samples.kernel_under_nic),
                           FactorOf(samples.collective_under_kernel)};
  measured.interference_repetitions = {static_cast<int>(samples.kernel_under_nvlink.size()),
                                       static_cast<int>(samples.kernel_under_nic.size()),
                                       static_cast<int>(samples.collective_under_kernel.size())};
  return measured;
}

}  // namespace optimus::executor
