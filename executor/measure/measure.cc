#include "executor/measure/measure.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/quantile.h"
#include "base/status_macros.h"
#include "executor/measure/probes.h"
#include "executor/runtime/run.h"

namespace optimus::executor {
namespace {

// Of one step: what its events and the times that are gathered take stays small.
constexpr int kKernelsAStep = 4096;
constexpr int kLaunches = 32;  // a sample of the launch time is their mean
// A step number that no run reaches: a backend that checks stamps only in its first steps, because
// checking takes time, does not check them here either.
constexpr int kStep = 1'000'000'000;

std::string Encode(const std::vector<double>& values) {
  std::string bytes;
  for (const double value : values) {
    const auto one = std::bit_cast<std::array<char, sizeof(double)>>(value);
    bytes.append(one.data(), one.size());
  }
  return bytes;
}
std::vector<double> Decode(const std::string& bytes) {
  std::vector<double> values;
  values.reserve(bytes.size() / sizeof(double));
  for (std::size_t i = 0; i + sizeof(double) <= bytes.size(); i += sizeof(double)) {
    std::array<char, sizeof(double)> one{};
    std::copy_n(bytes.data() + i, one.size(), one.data());
    values.push_back(std::bit_cast<double>(one));
  }
  return values;
}

Bytes UsedOf(const TransferCase& transfer) {
  return transfer.used > Bytes(0) ? transfer.used : transfer.sizes.back();
}

// As a schedule uses it. Where that is so little that waking threads is all there is to it, the
// largest that is measured.
std::size_t SizeToDisturb(const TransferCase& transfer) {
  constexpr Bytes kLeast(64 << 10);
  const auto& sizes = transfer.sizes;
  const Bytes used = UsedOf(transfer);
  if (used < kLeast) return sizes.size() - 1;
  const auto at = std::find(sizes.begin(), sizes.end(), used);
  return at == sizes.end() ? sizes.size() - 1 : static_cast<std::size_t>(at - sizes.begin());
}

// A watchdog follows the runtime as long as this lives.
class Followed {
 public:
  Followed(const FollowMeasuring& follow, const ir::Schedule& schedule, const Runtime& runtime)
      : follow_(follow) {
    if (!follow_) return;
    const std::string step = absl::StrCat("step ", kStep, ": ");  // says nothing
    follow_(
        absl::StrCat("measures", absl::StripPrefix(schedule.name, "measure")),
        [&runtime, step] {
          return std::string(absl::StripPrefix(runtime.DescribeCurrent(), step));
        },
        [&runtime] { return runtime.ended(); });
  }
  ~Followed() {
    if (follow_) follow_("between two measurements", nullptr, nullptr);
  }
  Followed(const Followed&) = delete;
  Followed& operator=(const Followed&) = delete;

 private:
  const FollowMeasuring& follow_;
};

class Round {
 public:
  Round(const MeasurePlan& plan, World& world, Device& device, Communicator& ranks, int repetitions,
        Samples& samples, const std::function<absl::Status()>& while_waiting,
        const FollowMeasuring& follow)
      : plan_(plan),
        world_(world),
        device_(device),
        ranks_(ranks),
        repetitions_(repetitions),
        samples_(samples),
        while_waiting_(while_waiting),
        follow_(follow) {
    samples_.kernels_ns.resize(plan.kernels.size());
    samples_.transfers_ns.resize(plan.transfers.size());
    for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
      samples_.transfers_ns[i].resize(plan.transfers[i].sizes.size());
    }
  }

  absl::Status Run() {
    OPTIMUS_RETURN_IF_ERROR(AgreeOnWorld());
    OPTIMUS_RETURN_IF_ERROR(Kernels());
    OPTIMUS_RETURN_IF_ERROR(Launch());
    for (std::size_t i = 0; i < plan_.transfers.size(); ++i) OPTIMUS_RETURN_IF_ERROR(Transfer(i));
    if (!plan_.interference) return absl::OkStatus();
    OPTIMUS_RETURN_IF_ERROR(InterferenceOver(LinkScope::kNvlink));
    return InterferenceOver(LinkScope::kNic);
  }

 private:
  // All ranks write the same schedules, also where nodes are not all of one size.
  absl::Status AgreeOnWorld() {
    const std::string mine = Encode({static_cast<double>(world_.local_size())});
    OPTIMUS_ASSIGN_OR_RETURN(const std::string first, world_.Broadcast(mine));
    probe_world_ = {world_.size(), static_cast<int>(Decode(first).at(0))};
    return absl::OkStatus();
  }

  // At rank 0 the times of all ranks.
  absl::StatusOr<StepTimes> RunSchedule(const ir::Schedule& schedule) {
    OPTIMUS_ASSIGN_OR_RETURN(
        const std::unique_ptr<Runtime> runtime,
        Runtime::Create(schedule, world_, device_, ranks_, /*workload=*/nullptr));
    const Followed followed(follow_, schedule, *runtime);
    RunOptions options;
    options.warm_up = 0;
    options.steps = 1;
    options.first_step = kStep;
    const auto wait = [this] { return while_waiting_ ? while_waiting_() : absl::OkStatus(); };
    OPTIMUS_ASSIGN_OR_RETURN(RunResult result,
                             ::optimus::executor::Run(*runtime, world_, options, wait));
    return result.times.empty() ? StepTimes() : std::move(result.times.front());
  }

  // What rank 0 reads in the times of the probe's schedule, at every rank.
  absl::StatusOr<Series> RunProbe(const ir::Schedule& schedule, std::size_t cases,
                                  absl::FunctionRef<Series(const StepTimes&)> read) {
    OPTIMUS_ASSIGN_OR_RETURN(const StepTimes times, RunSchedule(schedule));
    Series series(cases);
    if (world_.rank() == 0) series = read(times);
    for (std::vector<double>& samples : series) {
      OPTIMUS_ASSIGN_OR_RETURN(const std::string bytes, world_.Broadcast(Encode(samples)));
      samples = Decode(bytes);
    }
    return series;
  }

  absl::Status Kernels() {
    const auto a_step = static_cast<std::size_t>(std::max(kKernelsAStep / (repetitions_ + 1), 1));
    const auto all = absl::MakeConstSpan(plan_.kernels);
    for (std::size_t first = 0; first < all.size(); first += a_step) {
      const KernelProbe probe =
          MakeKernelProbe(all.subspan(first, a_step), repetitions_, probe_world_);
      OPTIMUS_ASSIGN_OR_RETURN(
          const Series series,
          RunProbe(probe.schedule, static_cast<std::size_t>(probe.kernels),
                   [&](const StepTimes& times) { return ReadKernels(probe, times); }));
      for (std::size_t i = 0; i < series.size(); ++i) {
        Append(series[i], samples_.kernels_ns[first + i]);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Launch() {
    const KernelProbe probe =
        MakeKernelProbe(std::vector<Kernel>(kLaunches), repetitions_, probe_world_);
    OPTIMUS_ASSIGN_OR_RETURN(
        const Series series,
        RunProbe(probe.schedule, static_cast<std::size_t>(probe.kernels),
                 [&](const StepTimes& times) { return ReadKernels(probe, times); }));
    for (int i = 0; i < repetitions_; ++i) {
      double sum = 0;
      for (const std::vector<double>& launches : series) sum += launches.at(i);
      samples_.launch_ns.push_back(sum / kLaunches);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Series> Messages(const TransferCase& transfer) {
    OPTIMUS_ASSIGN_OR_RETURN(const MessageProbe probe,
                             MakeMessageProbe(transfer, repetitions_, probe_world_));
    return RunProbe(probe.schedule, transfer.sizes.size(),
                    [&](const StepTimes& times) { return ReadMessages(probe, times); });
  }

  absl::StatusOr<Series> Collectives(const TransferCase& transfer) {
    OPTIMUS_ASSIGN_OR_RETURN(const CollectiveProbe probe,
                             MakeCollectiveProbe(transfer, repetitions_, probe_world_));
    return RunProbe(probe.schedule, transfer.sizes.size(),
                    [&](const StepTimes& times) { return ReadCollectives(probe, times); });
  }

  absl::Status Transfer(std::size_t index) {
    const TransferCase& transfer = plan_.transfers[index];
    OPTIMUS_ASSIGN_OR_RETURN(const Series series,
                             transfer.send ? Messages(transfer) : Collectives(transfer));
    for (std::size_t i = 0; i < series.size(); ++i) {
      Append(series[i], samples_.transfers_ns[index][i]);
    }
    return absl::OkStatus();
  }

  // The shortest GEMM that lasts as long as the collective, or the longest that there is; another
  // kernel only where there is no GEMM. So a few of each are enough to run under the other.
  std::optional<std::size_t> KernelToDisturb(double collective_ns) const {
    std::optional<std::size_t> best;
    const auto weight = [&](std::size_t i) {
      const bool gemm = plan_.kernels[i].kind == KernelKind::kGemm;
      const double time = Median(samples_.kernels_ns[i]);
      const bool enough = time >= collective_ns;
      return std::tuple(gemm, enough, enough ? -time : time);
    };
    for (std::size_t i = 0; i < plan_.kernels.size(); ++i) {
      if (!best || weight(i) > weight(*best)) best = i;
    }
    return best;
  }

  // The collective that moves most.
  std::optional<std::size_t> TransferToDisturb(LinkScope scope) const {
    std::optional<std::size_t> best;
    const auto used = [&](std::size_t i) { return UsedOf(plan_.transfers[i]); };
    for (std::size_t i = 0; i < plan_.transfers.size(); ++i) {
      const TransferCase& transfer = plan_.transfers[i];
      if (transfer.send || transfer.scope != scope || transfer.sizes.empty()) continue;
      if (!best || used(i) > used(*best)) best = i;
    }
    return best;
  }

  absl::Status InterferenceOver(LinkScope scope) {
    const std::optional<std::size_t> transfer = TransferToDisturb(scope);
    if (!transfer) return absl::OkStatus();
    const std::size_t size = SizeToDisturb(plan_.transfers[*transfer]);
    const double collective_ns = Median(samples_.transfers_ns[*transfer][size]);
    const std::optional<std::size_t> kernel = KernelToDisturb(collective_ns);
    if (!kernel) return absl::OkStatus();
    InterferenceCase interference{plan_.kernels[*kernel], plan_.transfers[*transfer],
                                  Median(samples_.kernels_ns[*kernel]), collective_ns};
    interference.transfer.sizes.resize(size + 1);  // its last is taken
    OPTIMUS_ASSIGN_OR_RETURN(const InterferenceProbe probe,
                             MakeInterferenceProbe(interference, repetitions_, probe_world_));
    OPTIMUS_ASSIGN_OR_RETURN(const Series factors,
                             RunProbe(probe.schedule, 2, [&](const StepTimes& times) {
                               InterferenceFactors read = ReadInterference(probe, times);
                               return Series{std::move(read.kernel), std::move(read.collective)};
                             }));
    const bool inside = scope == LinkScope::kNvlink;
    Append(factors[0], inside ? samples_.kernel_under_nvlink : samples_.kernel_under_nic);
    if (inside) Append(factors[1], samples_.collective_under_kernel);
    return absl::OkStatus();
  }

  static void Append(const std::vector<double>& from, std::vector<double>& to) {
    to.insert(to.end(), from.begin(), from.end());
  }

  const MeasurePlan& plan_;
  World& world_;
  Device& device_;
  Communicator& ranks_;
  int repetitions_;
  Samples& samples_;
  const std::function<absl::Status()>& while_waiting_;
  const FollowMeasuring& follow_;
  ProbeWorld probe_world_;
};

}  // namespace

absl::Status MeasureRound(const MeasurePlan& plan, World& world, Device& device,
                          Communicator& ranks, int repetitions, Samples& samples,
                          const std::function<absl::Status()>& while_waiting,
                          const FollowMeasuring& follow) {
  if (repetitions < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("measuring: ", repetitions, " repetitions; hint: at least 1"));
  }
  return Round(plan, world, device, ranks, repetitions, samples, while_waiting, follow).Run();
}

}  // namespace optimus::executor
