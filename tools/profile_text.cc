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
#include "tools/measuring.h"
#include "tools/profile_gaps.h"
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

// Per nanosecond: GFLOP/s of FLOPs, GB/s of bytes.
std::string RateText(double amount, Picoseconds time) {
  const double seconds = ToSeconds(time);
  return seconds > 0 ? absl::StrFormat("%.1f", amount / seconds / 1e9) : "-";
}

std::string MicrosecondsText(Picoseconds time) {
  return absl::StrFormat("%.1f", ToMicroseconds(time));
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
                   {{"computes", "GFLOP/s"}, false},
                   {{"memory", "GB/s"}, false}});
  for (const KernelMeasurement& m : measured.kernels) {
    const bool streams = m.kernel.kind == KernelKind::kMemoryBound;
    table.AddRow(
        {absl::StrCat(ToString(m.kernel.kind), " ", m.kernel.name), ShapeText(m.kernel),
         MicrosecondsText(m.time.median), SpreadText(m.time), absl::StrCat(m.time.repetitions),
         streams ? "-" : RateText(m.kernel.flops.value(), m.time.median),
         streams ? RateText(static_cast<double>(m.kernel.bytes.value()), m.time.median) : "-"});
  }
  return table.Render();
}

std::string TransferName(const TransferMeasurement& transfer) {
  return transfer.send ? "send" : ToString(transfer.kind);
}

bool BetweenNodes(const TransferMeasurement& transfer) { return transfer.scope == LinkScope::kNic; }

std::int32_t FewestRepetitions(const TransferMeasurement& transfer) {
  std::int32_t fewest = transfer.points.front().time.repetitions;
  for (const TransferPoint& point : transfer.points) {
    fewest = std::min(fewest, point.time.repetitions);
  }
  return fewest;
}

// "-" where the rate is the base's.
std::string FittedBandwidth(const ProfileReport& report, const TransferMeasurement& transfer) {
  const bool outside = BetweenNodes(transfer);
  const hw::Link& link = outside ? report.profile.nic() : report.profile.nvlink();
  const std::string field =
      absl::StrCat(outside ? "nic." : "nvlink.", TransferName(transfer), ".efficiency");
  const auto& kept = report.not_measured;
  if (std::find(kept.begin(), kept.end(), field) != kept.end()) return "-";
  const hw::RingCost& cost = transfer.send ? link.send() : hw::RingCostOf(link, transfer.kind);
  return absl::StrFormat("%.2f", cost.efficiency().value() * link.bandwidth_gb_per_s().value());
}

std::string TransferTable(const ProfileReport& report) {
  TextTable table({{{"transfer", "", ""}, true},
                   {{"place", "", ""}, true},
                   {{"group", "ranks", ""}, false},
                   {{"sizes", "", ""}, false},
                   {{"smallest", "size", "bytes"}, false},
                   {{"smallest", "median", "us"}, false},
                   {{"largest", "size", "MB"}, false},
                   {{"largest", "median", "us"}, false},
                   {{"largest", "spread", "%"}, false},
                   {{"repetitions", "", ""}, false},
                   {{"fit", "alpha", "us"}, false},
                   {{"fit", "bandwidth", "GB/s"}, false}});
  for (const TransferMeasurement& transfer : report.measured.transfers) {
    if (transfer.points.empty()) continue;
    const bool outside = BetweenNodes(transfer);
    const hw::Link& link = outside ? report.profile.nic() : report.profile.nvlink();
    const hw::RingCost& cost = transfer.send ? link.send() : hw::RingCostOf(link, transfer.kind);
    const TransferPoint& least = transfer.points.front();
    const TransferPoint& most = transfer.points.back();
    table.AddRow({TransferName(transfer), outside ? "between nodes" : "in a node",
                  absl::StrCat(transfer.group.ranks), absl::StrCat(transfer.points.size()),
                  absl::StrCat(least.bytes.value()), MicrosecondsText(least.time.median),
                  absl::StrFormat("%.4g", static_cast<double>(most.bytes.value()) / 1e6),
                  MicrosecondsText(most.time.median), SpreadText(most.time),
                  absl::StrCat(FewestRepetitions(transfer)),
                  absl::StrFormat("%.1f", cost.latency_us().value()),
                  FittedBandwidth(report, transfer)});
  }
  return table.Render();
}

void AppendTransfers(const ProfileReport& report, std::string& out) {
  const HardwareMeasurements& measured = report.measured;
  if (measured.transfers.empty()) {
    AppendFact("transfers",
               measured.ranks > 1 ? "not measured: what this profile is for moves no data"
                                  : "not measured: one rank alone moves no data",
               out);
    return;
  }
  absl::StrAppend(
      &out,
      Wrap("Transfers, from when the last member is ready until all have gone on; a send: half of "
           "there and back. Sizes as nccl-tests count them; median and spread as above. Fit: time "
           "= alpha + bytes on one rank's link / bandwidth, over all sizes and groups of a kind",
           0),
      "\n\n", TransferTable(report), "\n");
}

// "x1.25 (median of 20)"
std::string FactorText(double factor, int repetitions) {
  if (repetitions == 0) return ": not measured";
  return absl::StrFormat(" x%.3g (median of %d)", factor, repetitions);
}

void AppendOverlap(const HardwareMeasurements& measured, std::string& out) {
  const InterferenceRepetitions& n = measured.interference_repetitions;
  const Interference& f = measured.interference;
  if (n.kernel_under_nvlink + n.kernel_under_nic + n.collective_under_kernel == 0) {
    AppendFact("slow-down",
               measured.ranks > 1 ? "not measured: no kernel ran wholly under a collective"
                                  : "of kernels and collectives by each other: not measured, it "
                                    "takes 2 ranks",
               out);
    return;
  }
  AppendFact("slow-down",
             absl::StrCat("a kernel under a collective in a node",
                          FactorText(f.kernel_under_nvlink, n.kernel_under_nvlink),
                          ", between nodes", FactorText(f.kernel_under_nic, n.kernel_under_nic),
                          "; a collective under a kernel",
                          FactorText(f.collective_under_kernel, n.collective_under_kernel)),
             out);
}

// Before the roofline: what is measured directly.
void AppendOverheads(const HardwareMeasurements& measured, std::string& out) {
  if (measured.launch.repetitions > 0) {
    AppendFact("launch",
               absl::StrFormat("%.2f us for a kernel without work (median of %d, spread %s %%)",
                               ToMicroseconds(measured.launch.median), measured.launch.repetitions,
                               SpreadText(measured.launch)),
               out);
  }
  AppendOverlap(measured, out);
}

void AppendFit(const hw::HardwareProfile& profile, std::string& out) {
  const hw::Gpu& gpu = profile.gpu();
  AppendFact("roofline",
             absl::StrFormat(
                 "for kernels that are in no table: peak %.4g GFLOP/s, of it GEMM %.1f %% and "
                 "attention %.1f %%; memory %.4g GB/s, of it %.1f %%",
                 gpu.peak_dense_bf16_tflop_per_s().value() * 1e3,
                 100 * gpu.gemm_efficiency().value(), 100 * gpu.attention_efficiency().value(),
                 gpu.hbm_bandwidth_tb_per_s().value() * 1e3, 100 * gpu.hbm_efficiency().value()),
             out);
}

void AppendNotMeasured(const ProfileReport& report, std::string& out) {
  AppendBullets(
      absl::StrCat("Not measured, kept from ", report.base.name(), " (", report.base_from, ")"),
      NotMeasuredLines(report.profile, report.not_measured), out);
  const std::string other = OtherMachineText(report.profile, report.base, report.not_measured);
  if (!other.empty()) absl::StrAppend(&out, "  ! ", Wrap(other, 4), "\n");
}

std::string ConditionsText(const HardwareMeasurements& measured) {
  const std::string ranks = Count(measured.ranks, "rank", "ranks");
  if (measured.ranks == 1) return absl::StrCat(measured.date, ", 1 rank alone, on ", measured.host);
  return absl::StrCat(measured.date, ", ", ranks, ", ", measured.ranks_per_node,
                      " a node, rank 0 on ", measured.host);
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

// Only what was measured.
Json FactorsJson(const HardwareMeasurements& measured) {
  const InterferenceRepetitions& n = measured.interference_repetitions;
  Json json = InterferenceJson(measured.interference);
  if (n.kernel_under_nvlink == 0) json.erase("kernel_under_nvlink_factor");
  if (n.kernel_under_nic == 0) json.erase("kernel_under_nic_factor");
  if (n.collective_under_kernel == 0) json.erase("collective_under_kernel_factor");
  return json;
}

}  // namespace

std::string ProfileText(const ProfileReport& report) {
  const HardwareMeasurements& measured = report.measured;
  std::string out;
  AppendFact("profile", report.profile.name(), out);
  AppendFact("backend", absl::StrCat(measured.backend, ": ", measured.device), out);
  AppendFact("measured", ConditionsText(measured), out);
  absl::StrAppend(
      &out, "\n",
      Wrap(absl::StrCat(
               "Kernels",
               measured.ranks > 1 ? ", on all ranks at once: a repetition is the mean over ranks"
                                  : "",
               ". Median of the repetitions; spread: between their quartiles, as a share of it"),
           0),
      "\n\n", KernelTable(measured), "\n");
  AppendTransfers(report, out);
  AppendOverheads(measured, out);
  AppendFit(report.profile, out);
  const std::string few = FewSamplesText(measured);
  if (!few.empty()) AppendFact("few samples", few, out);
  AppendNotMeasured(report, out);
  absl::StrAppend(&out, "\n", WallLine(report.wall_s, PeakMemoryMib()));
  return out;
}

std::string ProfileJson(const ProfileReport& report) {
  const HardwareMeasurements& measured = report.measured;
  Json json;
  json["version"] = OPTIMUS_VERSION;
  json["profile"] = report.profile.name();
  json["backend"] = measured.backend;
  json["device"] = measured.device;
  json["host"] = measured.host;
  json["date"] = measured.date;
  json["ranks"] = measured.ranks;
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
  if (const Json factors = FactorsJson(measured); !factors.empty()) {
    json["interference"] = factors;
  }
  json["base"] = report.base.name();
  json["not_measured"] = report.not_measured;
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
