#include "tools/profile_gaps.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace optimus::tools {
namespace {

using Fields = std::vector<std::string>;

bool Has(const Fields& fields, const std::string& field) {
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

// "1 ms (ASSUMED)"
std::string Kept(const hw::Number& number, const char* unit) {
  return absl::StrFormat("%.4g%s (%s)", number.value(), unit,
                         hw::Number::Origin_Name(number.origin()));
}

void AddGpu(const hw::HardwareProfile& profile, const Fields& fields, Fields& lines) {
  struct Row {
    const char* field;
    const char* words;
    const hw::Number& (hw::Gpu::*number)() const;
    const char* unit;
  };
  constexpr Row kRows[] = {
      {"gpu.optimizer_step_ms", "fixed part of the optimizer step", &hw::Gpu::optimizer_step_ms,
       " ms"},
      {"gpu.peak_dense_bf16_tflop_per_s", "peak", &hw::Gpu::peak_dense_bf16_tflop_per_s,
       " TFLOP/s"},
      {"gpu.gemm_efficiency", "efficiency of GEMMs", &hw::Gpu::gemm_efficiency, " of the peak"},
      {"gpu.attention_efficiency", "efficiency of attention", &hw::Gpu::attention_efficiency,
       " of the peak"},
      {"gpu.hbm_bandwidth_tb_per_s", "memory bandwidth", &hw::Gpu::hbm_bandwidth_tb_per_s, " TB/s"},
      {"gpu.hbm_efficiency", "efficiency of memory-bound kernels", &hw::Gpu::hbm_efficiency,
       " of the memory bandwidth"},
      {"gpu.kernel_launch_us", "launch time of a kernel", &hw::Gpu::kernel_launch_us, " us"},
      {"gpu.memory_capacity_gib", "memory", &hw::Gpu::memory_capacity_gib, " GiB"},
  };
  for (const Row& row : kRows) {
    if (!Has(fields, row.field)) continue;
    lines.push_back(absl::StrCat(row.words, ": ", Kept((profile.gpu().*row.number)(), row.unit)));
  }
}

// `place`: "in a node". Kinds of transfer are named, numbers of a kind are grouped by their reason.
void AddLink(const std::string& name, const std::string& place, const hw::Link& link,
             const Fields& fields, Fields& lines) {
  if (Has(fields, name)) {
    lines.push_back(absl::StrCat("transfers ", place, ": all; bandwidth ",
                                 Kept(link.bandwidth_gb_per_s(), " GB/s")));
    return;
  }
  Fields kinds, one_size;
  for (const std::string& field : fields) {
    absl::string_view part = field;
    if (!absl::ConsumePrefix(&part, absl::StrCat(name, "."))) continue;
    if (part == "bandwidth_gb_per_s") {
      lines.push_back(
          absl::StrCat("bandwidth ", place, ": ", Kept(link.bandwidth_gb_per_s(), " GB/s")));
    } else if (absl::ConsumeSuffix(&part, ".efficiency")) {
      one_size.emplace_back(part);
    } else {
      kinds.emplace_back(part);
    }
  }
  if (!kinds.empty()) {
    lines.push_back(absl::StrCat("transfers ", place, ": ", absl::StrJoin(kinds, ", ")));
  }
  if (!one_size.empty()) {
    lines.push_back(absl::StrCat("efficiency ", place,
                                 ", where one size was measured: ", absl::StrJoin(one_size, ", ")));
  }
}

void AddInterference(const hw::HardwareProfile& profile, const Fields& fields, Fields& lines) {
  const hw::Overlap& overlap = profile.interference();
  const auto add = [&](const std::string& field, const char* words, const hw::Number& number) {
    if (!Has(fields, absl::StrCat("interference.", field))) return;
    lines.push_back(absl::StrCat(
        words, ": ", number.has_value() ? absl::StrCat("x", Kept(number, "")) : "none"));
  };
  add("kernel_under_nvlink_factor", "slow-down of a kernel under a collective in a node",
      overlap.kernel_under_nvlink_factor());
  add("kernel_under_nic_factor", "slow-down of a kernel under a collective between nodes",
      overlap.kernel_under_nic_factor());
  add("collective_under_kernel_factor", "slow-down of a collective under a kernel",
      overlap.collective_under_kernel_factor());
}

}  // namespace

std::vector<std::string> NotMeasuredLines(const hw::HardwareProfile& profile,
                                          const std::vector<std::string>& not_measured) {
  Fields lines;
  AddGpu(profile, not_measured, lines);
  if (Has(not_measured, "gpus_per_node")) {
    lines.push_back(absl::StrCat("ranks a node: ", Kept(profile.gpus_per_node(), "")));
  }
  AddLink("nvlink", "in a node", profile.nvlink(), not_measured, lines);
  AddLink("nic", "between nodes", profile.nic(), not_measured, lines);
  AddInterference(profile, not_measured, lines);
  return lines;
}

std::string OtherMachineText(const hw::HardwareProfile& profile, const hw::HardwareProfile& base,
                             const std::vector<std::string>& not_measured) {
  constexpr double kAnother = 10;
  if (Has(not_measured, "gpu.peak_dense_bf16_tflop_per_s")) return "";
  const double ratio = base.gpu().peak_dense_bf16_tflop_per_s().value() /
                       profile.gpu().peak_dense_bf16_tflop_per_s().value();
  if (ratio < kAnother && ratio > 1 / kAnother) return "";
  return absl::StrFormat(
      "%s is another kind of machine: its peak is %.*g times the measured one. What is kept from "
      "it says little about this machine; hint: --base=P.textproto of one that is like it",
      base.name(), ratio < 1 ? 2 : 6, ratio < 1 ? ratio : std::round(ratio));
}

}  // namespace optimus::tools
