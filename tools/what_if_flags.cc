#include "tools/what_if_flags.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/parse_units.h"
#include "base/status_macros.h"
#include "hw_profiles/changed_link.h"
#include "tools/shared_flags.h"

namespace optimus::tools {
namespace {

constexpr double kLargestFactor = 1000;

absl::Status BadFlag(const std::string& flag, const std::string& value, const std::string& want) {
  return absl::InvalidArgumentError(absl::StrCat(flag, "=", value, ": ", want));
}

// Splits at the only colon.
bool Split(const std::string& text, std::string& before, std::string& after) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) return false;
  before = text.substr(0, colon);
  after = text.substr(colon + 1);
  return true;
}

absl::Status ParseStraggler(const std::string& text, ParsedWhatIf& parsed) {
  const char* want = "write RANK:FACTOR, as 3:1.3; the factor is above 0 and at most 1000";
  std::string rank, factor;
  std::pair<std::int32_t, double> straggler;
  if (!Split(text, rank, factor) || !absl::SimpleAtoi(rank, &straggler.first) ||
      straggler.first < 0 || !absl::SimpleAtod(factor, &straggler.second) ||
      !(straggler.second > 0) || straggler.second > kLargestFactor) {
    return BadFlag("--straggler", text, want);
  }
  for (const auto& [known, unused] : parsed.what_if.stragglers) {
    if (known == straggler.first) return BadFlag("--straggler", text, "this rank is given twice");
  }
  parsed.what_if.stragglers.push_back(straggler);
  parsed.texts.push_back(absl::StrFormat("kernels of rank %d take %g times as long",
                                         straggler.first, straggler.second));
  return absl::OkStatus();
}

absl::Status ChangeLink(const std::string& text, hw::HardwareProfile& before,
                        hw::HardwareProfile& after, std::vector<std::string>& texts) {
  std::string link, rate;
  if (!Split(text, link, rate) || (link != "nic" && link != "nvlink")) {
    return BadFlag("--link", text,
                   "write LINK:RATE, as nic:50GB/s or nvlink:900GB/s: raw, per GPU "
                   "and direction");
  }
  const LinkScope scope = link == "nic" ? LinkScope::kNic : LinkScope::kNvlink;
  const auto bandwidth = ParseBandwidth(rate);
  if (!bandwidth.ok()) return BadFlag("--link", text, std::string(bandwidth.status().message()));
  const double old =
      (scope == LinkScope::kNic ? before.nic() : before.nvlink()).bandwidth_gb_per_s().value();
  auto changed = hw::WithBandwidth(after, scope, *bandwidth);
  if (!changed.ok()) return BadFlag("--link", text, std::string(changed.status().message()));
  after = *std::move(changed);
  before = hw::WithoutMeasuredTransfers(std::move(before), scope);
  texts.push_back(absl::StrFormat("%s of %g GB/s per GPU and direction instead of %g", link,
                                  bandwidth->value() / 1e9, old));
  return absl::OkStatus();
}

absl::Status CheckCluster(const hw::HardwareProfile& profile, const traces::Recording& recording) {
  std::int32_t ranks = recording.world;
  for (const traces::RecordedRank& rank : recording.ranks) {
    ranks = std::max(ranks, rank.rank + 1);
  }
  if (!profile.has_cluster_gpus() || ranks <= profile.cluster_gpus().value()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the trace is of ", ranks, " ranks, but profile ", profile.name(),
                   " is of a cluster of ", profile.cluster_gpus().value(),
                   " GPUs (cluster_gpus); hint: give a profile of the cluster that it ran on"));
}

absl::Status LoadPrices(const WhatIfFlags& flags, const traces::Recording& recording,
                        ParsedWhatIf& parsed) {
  if (flags.profile.empty()) {
    if (flags.links.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("--link=", flags.links.front(),
                     ": needs --profile: the hardware that the trace was recorded on"));
  }
  auto loaded = hw::LoadProfile(flags.profile);
  if (!loaded.ok()) {
    return absl::Status(loaded.status().code(),
                        absl::StrCat("--profile: ", loaded.status().message()));
  }
  parsed.profile = *std::move(loaded);
  OPTIMUS_RETURN_IF_ERROR(CheckCluster(*parsed.profile, recording));
  hw::HardwareProfile before = *parsed.profile, after = *parsed.profile;
  std::set<std::string> changed;
  for (const std::string& link : flags.links) {
    if (!changed.insert(link.substr(0, link.find(':'))).second) {
      return BadFlag("--link", link, "this link is given twice");
    }
    OPTIMUS_RETURN_IF_ERROR(ChangeLink(link, before, after, parsed.texts));
  }
  parsed.before = std::make_unique<hw::ProfileCostModel>(std::move(before));
  parsed.after = std::make_unique<hw::ProfileCostModel>(std::move(after));
  if (flags.links.empty()) return absl::OkStatus();
  parsed.what_if.before = parsed.before.get();
  parsed.what_if.after = parsed.after.get();
  return absl::OkStatus();
}

}  // namespace

void AddTraceProfileFlag(CLI::App& command, std::string& profile, const std::string& need) {
  command
      .add_option(
          "--profile", profile,
          absl::StrCat("Hardware profile, a name or a textproto: the hardware that the trace "
                       "was recorded on. ",
                       need))
      ->check(NotEmpty)
      ->type_name("NAME");
}

void AddWhatIfFlags(CLI::App& command, WhatIfFlags& flags) {
  AddTraceProfileFlag(command, flags.profile, "--link needs it, and a trace without times");
  command
      .add_option("--scale-compute", flags.scale_compute,
                  "What if every kernel took this many times as long")
      ->type_name("FACTOR")
      ->default_str("1");
  command
      .add_option("--link", flags.links,
                  "What if a link had another raw bandwidth per GPU and direction: nic:100GB/s, "
                  "nvlink:900GB/s. Recorded times are multiplied by what the profile says of both. "
                  "May be given for both links")
      ->type_name("LINK:RATE");
  command
      .add_option("--straggler", flags.stragglers,
                  "What if the kernels of a rank took FACTOR times as long. May be given several "
                  "times")
      ->type_name("RANK:FACTOR");
  command
      .add_option("--drop-exposed", flags.drop,
                  "What if a kind of communication took no time (who waits for whom stays): dp, "
                  "tp, pp, ep, cp, a kind (all_reduce), both (\"dp all_reduce\"), or all. May be "
                  "given several times")
      ->type_name("KIND");
}

absl::StatusOr<ParsedWhatIf> ParseWhatIf(const WhatIfFlags& flags,
                                         const traces::Recording& recording) {
  ParsedWhatIf parsed;
  parsed.what_if.compute_scale = flags.scale_compute;
  if (!(flags.scale_compute > 0) || flags.scale_compute > kLargestFactor) {
    return BadFlag("--scale-compute", absl::StrCat(flags.scale_compute),
                   "must be above 0 and at most 1000");
  }
  if (flags.scale_compute != 1) {
    parsed.texts.push_back(
        absl::StrFormat("every kernel takes %g times as long", flags.scale_compute));
  }
  OPTIMUS_RETURN_IF_ERROR(LoadPrices(flags, recording, parsed));
  for (const std::string& straggler : flags.stragglers) {
    OPTIMUS_RETURN_IF_ERROR(ParseStraggler(straggler, parsed));
  }
  for (const std::string& drop : flags.drop) {
    parsed.what_if.drop.push_back(drop);
    parsed.texts.push_back(absl::StrCat("communication '", drop, "' takes no time"));
  }
  return parsed;
}

}  // namespace optimus::tools
