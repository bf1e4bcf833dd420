#pragma once
// The Workload of MakeNumericsWorkload. Internal to numerics/ and its tests.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/numerics/anatomy.h"
#include "executor/numerics/holdings.h"
#include "executor/numerics/slots.h"
#include "executor/numerics/task.h"
#include "executor/numerics/tensor_memory.h"
#include "executor/runtime/workload.h"

namespace optimus::executor::numerics {

class NumericsWorkload : public Workload {
 public:
  // Schedule must outlive it.
  static absl::StatusOr<std::unique_ptr<NumericsWorkload>> Make(const ir::Schedule& schedule,
                                                                int rank,
                                                                const NumericsModel& model);

  absl::Status Begin(int step) override;
  absl::StatusOr<std::function<absl::Status()>> Kernel(std::uint32_t operation) override;
  absl::StatusOr<Payload> Data(std::uint32_t operation) override;

  // After a step: its first error (of payloads too, which cannot return one), or a tensor that
  // nobody has used, or a gradient that has not been applied.
  absl::Status Finished();
  const Anatomy& anatomy() const { return *anatomy_; }
  Parameters& parameters() { return parameters_; }
  // Does one operation make what another one needs (tensors, values, the gradients that it
  // reduces)?
  bool Feeds(std::uint32_t from, std::uint32_t to) const;
  // This rank's share of the loss, by step.
  std::vector<double> Losses() const;
  // Of all steps so far.
  const TensorMemory& memory() const { return memory_; }

 private:
  NumericsWorkload() = default;
  absl::Status CompileAll();
  absl::Status CompileOne(std::uint32_t id, bool repeated);
  void NoteMakers();
  void CountContributions();
  void FreeBetweenGathers();

  absl::Status RunKernel(std::uint32_t id);
  absl::Span<const float> Start(std::uint32_t id);
  absl::Span<float> Output(std::uint32_t id);
  void End(std::uint32_t id);
  absl::Status Check(std::uint32_t id) const;
  absl::Status CheckMakes(std::uint32_t id) const;
  absl::Status Missing(std::uint32_t id, const Slot& slot) const;
  absl::Status MissingValues(std::uint32_t id, const Parameter& parameter) const;
  void Made(Task& task);
  void Drop(Task& task);
  absl::Status Fail(absl::Status status);
  std::string Name(std::uint32_t id) const;

  NumericsModel model_;
  std::unique_ptr<Anatomy> anatomy_;
  Place place_;
  Slots slots_;
  Parameters parameters_;
  TensorMemory memory_;
  double loss_ = 0;
  std::unique_ptr<Context> context_;
  std::deque<Task> tasks_;
  std::vector<double> losses_;
  bool running_ = false;
  std::atomic<bool> optimized_{false};
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  absl::Status error_;
};

}  // namespace optimus::executor::numerics
