#include "tools/profile_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/text_format.h"
#include "hw_profiles/collective_cost.h"
#include "tools/json_pieces.h"
#include "tools/resources.h"
#include "tools/text_pieces.h"
#include "tools/text_table.h"

namespace optimus::tools {
namespace {

using Json = nlohmann::ordered_json;

// "m 512 n 2048 k 512", "2 sequences of 256, 8 heads of 64, causal backward", "3.1 MB".
std::string ShapeText(const Kernel& kernel) {
  if (kernel.kind == KernelKind::kGemm) {
    return absl::StrCat("m ", kernel.gemm.m, " n ", kernel.gemm.n, " k ", kernel.gemm.k);
  }
  if (kernel.kind == KernelKind::kAttention) {
    const AttentionShape& a = kernel.attention;
    return absl::StrCat(a.sequences, a.sequences == 1 ? " sequence of " : " sequences of ",
                        a.sequence_length, ", ", a.heads, " heads of ", a.head_dim,
                        a.causal ? ", causal" : "", a.backward ? ", backward" : "");
  }
  return absl::StrFormat("%.4g MB", static_cast<double>(kernel.bytes.value()) / 1e6);
}

std::string RateText(const Kernel& kernel, Picoseconds time) {
  const double seconds = ToSeconds(time);
  if (seconds <= 0) return "-";
  if (kernel.kind == KernelKind::kMemoryBound) {
    return absl::StrFormat("%.1f GB/s", static_cast<double>(kernel.bytes.value()) / seconds / 1e9);
  }
  return absl::StrFormat("%.1f GFLOP/s", kernel.flops.value() / seconds / 1e9);
}

std::string SpreadText(const MeasuredTime& time) {
  const double median = ToSeconds(time.median);
  return median > 0 ? Percent(ToSeconds(time.spread) / median) : "-";
}

std::string KernelTable(const HardwareMeasurements& measured) {
  TextTable table({{{"kernel", ""}, true},
                   {{"shape", ""}, true},
                   {{"median", "us"}, false},
                   {{"spread", "%"}, false},
                   {{"repetitions", ""}, false},
                   {{"rate", ""}, false}});
  for (const KernelMeasurement& m : measured.kernels) {
    table.AddRow({absl::StrCat(ToString(m.kernel.kind), " ", m.kernel.name), ShapeText(m.kernel),
                  absl::StrFormat("%.1f", ToMicroseconds(m.time.median)), SpreadText(m.time),
                  absl::StrCat(m.time.repetitions), RateText(m.kernel, m.time.median)});
  }
  return table.Render();
}

std::string TransferName(const TransferMeasurement& transfer) {
  return transfer.send ? "send" : ToString(transfer.kind);
}

bool BetweenNodes(const TransferMeasurement& transfer) { return transfer.scope == LinkScope::kNic; }

std::string TransferTable(const HardwareMeasurements& measured,
                          const hw::HardwareProfile& profile) {
  TextTable table({{{"transfer", "", ""}, true},
                   {{"place", "", ""}, true},
                   {{"", "ranks", ""}, false},
                   {{"", "sizes", ""}, false},
                   {{"smallest", "median", "us"}, false},
                   {{"largest", "size", "MB"}, false},
                   {{"largest", "median", "us"}, false},
                   {{"largest", "spread", "%"}, false},
                   {{"fit", "alpha", "us"}, false},
                   {{"fit", "bandwidth", "GB/s"}, false}});
  for (const TransferMeasurement& transfer : measured.transfers) {
    if (transfer.points.empty()) continue;
    const hw::Link& link = BetweenNodes(transfer) ? profile.nic() : profile.nvlink();
    const hw::RingCost& cost = transfer.send ? link.send() : hw::RingCostOf(link, transfer.kind);
    const TransferPoint& least = transfer.points.front();
    const TransferPoint& most = transfer.points.back();
    table.AddRow(
        {TransferName(transfer), BetweenNodes(transfer) ? "between nodes" : "in a node",
         absl::StrCat(transfer.group.ranks), absl::StrCat(transfer.points.size()),
         absl::StrFormat("%.1f", ToMicroseconds(least.time.median)),
         absl::StrFormat("%.4g", static_cast<double>(most.bytes.value()) / 1e6),
         absl::StrFormat("%.1f", ToMicroseconds(most.time.median)), SpreadText(most.time),
         absl::StrFormat("%.1f", cost.latency_us().value()),
         absl::StrFormat("%.2f", cost.efficiency().value() * link.bandwidth_gb_per_s().value())});
  }
  return table.Render();
}

void AppendFit(const hw::HardwareProfile& profile, std::string& out) {
  const hw::Gpu& gpu = profile.gpu();
  AppendFact("roofline",
             absl::StrFormat(
                 "peak %.4g GFLOP/s, of it GEMM %.1f %% and attention %.1f %%; memory "
                 "%.4g GB/s, of it %.1f %%: for work that is in no table",
                 gpu.peak_dense_bf16_tflop_per_s().value() * 1e3,
                 100 * gpu.gemm_efficiency().value(), 100 * gpu.attention_efficiency().value(),
                 gpu.hbm_bandwidth_tb_per_s().value() * 1e3, 100 * gpu.hbm_efficiency().value()),
             out);
}

void AppendOverheads(const HardwareMeasurements& measured, std::string& out) {
  AppendFact("launch",
             absl::StrFormat("%.2f us, spread %s %%, %d repetitions: a kernel without work",
                             ToMicroseconds(measured.launch.median), SpreadText(measured.launch),
                             measured.launch.repetitions),
             out);
  if (measured.interference_repetitions == 0) {
    AppendFact("overlap", "not measured: it takes 2 ranks", out);
    return;
  }
  const Interference& f = measured.interference;
  AppendFact("overlap",
             absl::StrFormat("kernel under a collective in a node x%.3g, between nodes x%.3g, "
                             "collective under a kernel x%.3g (%d repetitions)",
                             f.kernel_under_nvlink, f.kernel_under_nic, f.collective_under_kernel,
                             measured.interference_repetitions),
             out);
}

Json TimeJson(const MeasuredTime& time) {
  Json json;
  json["median_s"] = ToSeconds(time.median);
  json["spread_s"] = ToSeconds(time.spread);
  json["repetitions"] = time.repetitions;
  return json;
}

Json TransferJson(const TransferMeasurement& transfer) {
  Json json;
  json["transfer"] = TransferName(transfer);
  json["between_nodes"] = BetweenNodes(transfer);
  json["ranks"] = transfer.group.ranks;
  json["points"] = Json::array();
  for (const TransferPoint& point : transfer.points) {
    Json one = TimeJson(point.time);
    one["bytes"] = point.bytes.value();
    json["points"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

std::string ProfileText(const HardwareMeasurements& measured, const hw::HardwareProfile& profile,
                        double wall_s) {
  std::string out;
  AppendFact("profile", profile.name(), out);
  AppendFact("backend", absl::StrCat(measured.backend, ": ", measured.device), out);
  AppendFact(
      "host",
      absl::StrCat(measured.host, ", ", measured.ranks_per_node,
                   measured.ranks_per_node == 1 ? " rank" : " ranks", " a node, ", measured.date),
      out);
  absl::StrAppend(&out, "\nKernels: all ranks at once; spread is between the quartiles\n\n",
                  KernelTable(measured), "\n");
  if (measured.transfers.empty()) {
    AppendFact("transfers",
               "not measured: one rank alone moves no data; those of the base profile are kept",
               out);
  } else {
    absl::StrAppend(&out, "Transfers\n\n", TransferTable(measured, profile), "\n");
  }
  AppendOverheads(measured, out);
  AppendFit(profile, out);
  absl::StrAppend(&out, "\n", WallLine(wall_s, PeakMemoryMib()));
  return out;
}

std::string ProfileJson(const HardwareMeasurements& measured, const hw::HardwareProfile& profile) {
  Json json;
  json["version"] = OPTIMUS_VERSION;
  json["profile"] = profile.name();
  json["backend"] = measured.backend;
  json["device"] = measured.device;
  json["host"] = measured.host;
  json["date"] = measured.date;
  json["ranks_per_node"] = measured.ranks_per_node;
  json["kernels"] = Json::array();
  for (const KernelMeasurement& m : measured.kernels) {
    Json one = TimeJson(m.time);
    one["kind"] = ToString(m.kernel.kind);
    one["name"] = m.kernel.name;
    one["shape"] = ShapeText(m.kernel);
    one["flops"] = m.kernel.flops.value();
    one["bytes"] = m.kernel.bytes.value();
    json["kernels"].push_back(std::move(one));
  }
  json["transfers"] = Json::array();
  for (const TransferMeasurement& transfer : measured.transfers) {
    json["transfers"].push_back(TransferJson(transfer));
  }
  json["launch"] = TimeJson(measured.launch);
  if (measured.interference_repetitions > 0) {
    json["interference"] = InterferenceJson(measured.interference);
  }
  return DumpJson(json);
}

absl::StatusOr<std::string> EncodeProfile(const hw::HardwareProfile& profile) {
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(profile, &text)) {
    return absl::InternalError(absl::StrCat("profile ", profile.name(), " cannot be written"));
  }
  return text;
}

}  // namespace optimus::tools
