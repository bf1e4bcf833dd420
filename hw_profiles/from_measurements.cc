#include "hw_profiles/from_measurements.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "hw_profiles/fit.h"
#include "hw_profiles/measured_links.h"
#include "hw_profiles/measured_rows.h"
#include "hw_profiles/measured_tables.h"
#include "hw_profiles/number_range.h"

namespace optimus::hw {
namespace {

// The measured kernels of one kind, as what their time grows with.
struct KernelSamples {
  std::vector<Sample> samples;  // FLOPs or bytes, seconds
  std::int32_t repetitions = std::numeric_limits<std::int32_t>::max();
  // The highest amount a second that a kernel reached, launch included.
  double best_rate() const {
    double best = 0;
    for (const Sample& sample : samples) best = std::max(best, sample.amount / sample.time);
    return best;
  }
  // Of many kernels, launch apart; the best rate where nothing but launches was measured.
  double FittedRate(double launch_s) const {
    const double slope = FitSlope(samples, launch_s);
    return slope > 0 ? 1 / slope : best_rate();
  }
};

// Fills a profile number by number and notes what had to come from the base.
class Maker {
 public:
  Maker(const HardwareMeasurements& measured, HardwareProfile& profile)
      : measured_(measured), profile_(profile) {}

  void Fill() {
    FillNode();
    FillLaunch();
    FillHbm();  // before the FLOP rates: a GEMM cannot be faster than its memory traffic
    FillMath();
    FillLink("nvlink", LinkScope::kNvlink, *profile_.mutable_nvlink());
    FillLink("nic", LinkScope::kNic, *profile_.mutable_nic());
    FillInterference();
    from_base_.emplace_back("gpu.optimizer_step_ms");
  }
  const std::vector<std::string>& from_base() const { return from_base_; }

 private:
  std::string Where() const {
    return absl::StrCat(measured_.backend, " on ", measured_.device, ", ", measured_.host);
  }
  void Set(Number& number, const std::string& field, double value, const std::string& how) {
    const NumberRange range = RangeOf(field);
    number.set_value(std::clamp(value, range.least, range.most));
    number.set_origin(Number::MEASURED);
    number.set_source(absl::StrCat(Where(), ": ", how));
    number.set_date(measured_.date);
  }
  static std::string MedianOf(std::int64_t repetitions) {
    return absl::StrCat("median of ", repetitions);
  }
  KernelSamples Collect(MeasuredKernel::Kind kind) const;
  double launch_s() const { return profile_.gpu().kernel_launch_us().value() * 1e-6; }
  double hbm_rate() const {
    const Gpu& gpu = profile_.gpu();
    return gpu.hbm_bandwidth_tb_per_s().value() * 1e12 * gpu.hbm_efficiency().value();
  }

  void FillNode();
  void FillLaunch();
  void FillHbm();
  void FillMath();
  void FillEfficiency(const std::string& field, const KernelSamples& kernels, double peak,
                      Number& number);
  void FillLink(const std::string& name, LinkScope scope, Link& link);
  void FillInterference();
  void FillRow(const std::string& name, const FittedRow& row, RingCost& cost);
  void FillFactor(const std::string& field, double factor, int repetitions, Number& number);

  const HardwareMeasurements& measured_;
  HardwareProfile& profile_;
  std::vector<std::string> from_base_;  // fields, as in error messages
};

KernelSamples Maker::Collect(MeasuredKernel::Kind kind) const {
  KernelSamples kernels;
  for (const MeasuredKernel& row : profile_.measured_kernels()) {
    const bool memory_bound = kind == MeasuredKernel::MEMORY_BOUND;
    const auto bytes = static_cast<double>(row.bytes());
    const double amount = memory_bound ? bytes : row.flops();
    if (row.kind() != kind || amount <= 0) continue;
    Sample sample{amount, row.time().median_us() * 1e-6};
    if (kind == MeasuredKernel::GEMM) sample.floor = bytes / hbm_rate();
    kernels.samples.push_back(sample);
    kernels.repetitions = std::min(kernels.repetitions, row.time().repetitions());
  }
  return kernels;
}

void Maker::FillNode() {
  if (measured_.ranks > 1) {
    Set(*profile_.mutable_gpus_per_node(), "gpus_per_node", measured_.ranks_per_node,
        "ranks on one node");
  } else {
    from_base_.emplace_back("gpus_per_node");
  }
  if (measured_.memory > Bytes(0)) {
    Set(*profile_.mutable_gpu()->mutable_memory_capacity_gib(), "memory_capacity_gib",
        ToGib(measured_.memory), "memory for one rank");
  } else {
    from_base_.emplace_back("gpu.memory_capacity_gib");
  }
}

void Maker::FillLaunch() {
  if (measured_.launch.repetitions < 1) {
    from_base_.emplace_back("gpu.kernel_launch_us");
    return;
  }
  Set(*profile_.mutable_gpu()->mutable_kernel_launch_us(), "kernel_launch_us",
      ToSeconds(measured_.launch.median) * 1e6,
      absl::StrCat(MedianOf(measured_.launch.repetitions), " kernels without work"));
}

void Maker::FillHbm() {
  const KernelSamples kernels = Collect(MeasuredKernel::MEMORY_BOUND);
  if (kernels.samples.empty()) {
    from_base_.emplace_back("gpu.hbm_bandwidth_tb_per_s");
    from_base_.emplace_back("gpu.hbm_efficiency");
    return;
  }
  const double rate = kernels.FittedRate(launch_s());
  const double best = std::max(rate, kernels.best_rate());
  const std::string how = absl::StrCat(MedianOf(kernels.repetitions), "; ");
  const std::string count = absl::StrCat(kernels.samples.size(), " memory-bound kernels");
  Gpu& gpu = *profile_.mutable_gpu();
  Set(*gpu.mutable_hbm_bandwidth_tb_per_s(), "hbm_bandwidth_tb_per_s", best / 1e12,
      absl::StrCat(how, "best rate of ", count));
  Set(*gpu.mutable_hbm_efficiency(), "hbm_efficiency",
      rate / (gpu.hbm_bandwidth_tb_per_s().value() * 1e12),
      absl::StrCat(how, "least squares over ", count));
}

void Maker::FillEfficiency(const std::string& field, const KernelSamples& kernels, double peak,
                           Number& number) {
  if (kernels.samples.empty()) {
    from_base_.push_back(absl::StrCat("gpu.", field));
    return;
  }
  Set(number, field, kernels.FittedRate(launch_s()) / peak,
      absl::StrCat(MedianOf(kernels.repetitions), "; least squares over ", kernels.samples.size(),
                   " kernels"));
}

void Maker::FillMath() {
  const KernelSamples gemms = Collect(MeasuredKernel::GEMM);
  const KernelSamples attention = Collect(MeasuredKernel::ATTENTION);
  Gpu& gpu = *profile_.mutable_gpu();
  Number& peak = *gpu.mutable_peak_dense_bf16_tflop_per_s();
  if (gemms.samples.empty() && attention.samples.empty()) {
    from_base_.emplace_back("gpu.peak_dense_bf16_tflop_per_s");
  } else {
    double best = 0;
    for (const KernelSamples* kernels : {&gemms, &attention}) {
      best = std::max({best, kernels->best_rate(), kernels->FittedRate(launch_s())});
    }
    Set(peak, "peak_dense_bf16_tflop_per_s", best / 1e12,
        absl::StrCat(MedianOf(std::min(gemms.repetitions, attention.repetitions)),
                     "; best rate of ", gemms.samples.size(), " GEMMs and ",
                     attention.samples.size(), " attention cores, in the precision that was run"));
  }
  if (!gemms.samples.empty()) gpu.clear_tiles();  // the fitted efficiency has all shapes in it
  const double peak_rate = peak.value() * 1e12;
  FillEfficiency("gemm_efficiency", gemms, peak_rate, *gpu.mutable_gemm_efficiency());
  FillEfficiency("attention_efficiency", attention, peak_rate, *gpu.mutable_attention_efficiency());
}

// `name`: of the profile's field. A kind of transfer that was not measured keeps the base's latency
// and its efficiency, a share of the link that was measured.
void Maker::FillLink(const std::string& name, LinkScope scope, Link& link) {
  const FittedLink fitted = FitLink(profile_, scope);
  if (fitted.rows.empty()) {
    from_base_.push_back(name);
    return;
  }
  std::int32_t repetitions = fitted.rows.front().repetitions;
  for (const FittedRow& row : fitted.rows) repetitions = std::min(repetitions, row.repetitions);
  if (fitted.fastest.empty()) {
    from_base_.push_back(absl::StrCat(name, ".bandwidth_gb_per_s"));
  } else {
    Set(*link.mutable_bandwidth_gb_per_s(), "bandwidth_gb_per_s", fitted.bandwidth_gb_per_s,
        absl::StrCat(MedianOf(repetitions), "; rate of ", fitted.fastest,
                     ", the fastest kind of transfer"));
  }
  const auto* descriptor = Link::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const auto* field = descriptor->field(i);
    if (field->message_type() != RingCost::descriptor()) continue;
    const auto row = std::find_if(fitted.rows.begin(), fitted.rows.end(),
                                  [&](const FittedRow& r) { return r.field == field->name(); });
    if (row == fitted.rows.end()) {
      from_base_.push_back(absl::StrCat(name, ".", field->name()));
      continue;
    }
    FillRow(absl::StrCat(name, ".", field->name()), *row,
            static_cast<RingCost&>(*link.GetReflection()->MutableMessage(&link, field)));
  }
  // Whatever algorithm and protocol was used is in the measured times.
  profile_.clear_protocols();
  if (scope == LinkScope::kNvlink) profile_.clear_nvls();
}

void Maker::FillRow(const std::string& name, const FittedRow& row, RingCost& cost) {
  const std::string median = MedianOf(row.repetitions);
  if (row.one_size) {
    from_base_.push_back(absl::StrCat(name, ".efficiency"));
    Set(*cost.mutable_latency_us(), "latency_us", row.latency_us,
        absl::StrCat(median, "; of one size, less its bytes at the bandwidth and efficiency here"));
    return;
  }
  const std::string how = absl::StrCat(median, "; least squares over ", row.points, " points");
  Set(*cost.mutable_efficiency(), "efficiency", row.efficiency, how);
  Set(*cost.mutable_latency_us(), "latency_us", row.latency_us, how);
}

void Maker::FillFactor(const std::string& field, double factor, int repetitions, Number& number) {
  if (repetitions > 0) {
    Set(number, field, factor, MedianOf(repetitions));
  } else {
    from_base_.push_back(absl::StrCat("interference.", field));
  }
}

void Maker::FillInterference() {
  const Interference& factors = measured_.interference;
  Overlap overlap = profile_.interference();
  const InterferenceRepetitions& repetitions = measured_.interference_repetitions;
  FillFactor("kernel_under_nvlink_factor", factors.kernel_under_nvlink,
             repetitions.kernel_under_nvlink, *overlap.mutable_kernel_under_nvlink_factor());
  FillFactor("kernel_under_nic_factor", factors.kernel_under_nic, repetitions.kernel_under_nic,
             *overlap.mutable_kernel_under_nic_factor());
  FillFactor("collective_under_kernel_factor", factors.collective_under_kernel,
             repetitions.collective_under_kernel,
             *overlap.mutable_collective_under_kernel_factor());
  // What neither the measurements nor the base have stays absent.
  if (!overlap.kernel_under_nvlink_factor().has_value()) overlap.clear_kernel_under_nvlink_factor();
  if (!overlap.kernel_under_nic_factor().has_value()) overlap.clear_kernel_under_nic_factor();
  if (!overlap.collective_under_kernel_factor().has_value()) {
    overlap.clear_collective_under_kernel_factor();
  }
  if (overlap.ByteSizeLong() > 0) *profile_.mutable_interference() = overlap;
}

}  // namespace

absl::StatusOr<HardwareProfile> MakeProfile(const std::string& name,
                                            const HardwareMeasurements& measured,
                                            const HardwareProfile& base,
                                            std::vector<std::string>* not_measured) {
  HardwareProfile profile = base;
  profile.set_name(name);
  OPTIMUS_RETURN_IF_ERROR(FillMeasuredTables(measured, profile));
  Maker maker(measured, profile);
  maker.Fill();
  profile.set_measured_on(absl::StrCat(measured.backend, " on ", measured.device, ", ",
                                       measured.host, ", ", measured.date));
  profile.set_description(absl::StrCat("Measured: ", measured.kernels.size(), " kernels, ",
                                       measured.transfers.size(), " transfers. Not measured, from ",
                                       base.name(), ": ", absl::StrJoin(maker.from_base(), ", ")));
  OPTIMUS_RETURN_IF_ERROR(ValidateProfile(profile));
  if (not_measured != nullptr) *not_measured = maker.from_base();
  return profile;
}

}  // namespace optimus::hw
