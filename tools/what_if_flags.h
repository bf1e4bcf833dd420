#pragma once
// The flags of a what-if, and what they come to.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "hw_profiles/profile.h"
#include "traces/replay/graph.h"
#include "traces/replay/what_if.h"

namespace optimus::tools {

struct WhatIfFlags {
  std::string profile;
  double scale_compute = 1;
  std::vector<std::string> links;       // "nic:800GB/s"
  std::vector<std::string> stragglers;  // "rank:1.3"
  std::vector<std::string> drop;        // "dp"
};

// --profile, --scale-compute, --link, --straggler, --drop-exposed.
void AddWhatIfFlags(CLI::App& command, WhatIfFlags& flags);

// --profile of a trace; `need`: what it is for.
void AddTraceProfileFlag(CLI::App& command, std::string& profile, const std::string& need);

// A what-if with the prices that it needs.
struct ParsedWhatIf {
  traces::WhatIf what_if;          // points into this object: it is not copied
  std::vector<std::string> texts;  // what is changed, a line each; empty: nothing
  std::optional<hw::HardwareProfile> profile;
  std::unique_ptr<hw::ProfileCostModel> before, after;  // null without a profile
};

// INVALID_ARGUMENT naming the flag; a link without a profile; a profile of a cluster with fewer
// GPUs than the trace has ranks, with both numbers.
absl::StatusOr<ParsedWhatIf> ParseWhatIf(const WhatIfFlags& flags,
                                         const traces::Recording& recording);

}  // namespace optimus::tools
