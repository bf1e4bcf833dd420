#pragma once
// What `optimus sweep` says at its end, or before it begins.

#include <nlohmann/json.hpp>
#include <string>

#include "absl/types/span.h"
#include "tools/json_fields.h"
#include "tools/sweep/run/engine.h"
#include "tools/sweep/spec/sweep.h"

namespace optimus::tools {

struct SweepReport {
  const sweep::LoadedSweep* sweep = nullptr;
  sweep::Survey survey;
  sweep::Shard shard;
  // Of a run; of a dry run there is none.
  std::string database;
  const sweep::EngineResult* result = nullptr;
};

// "points      960 of 1200 combinations ...": what there is to simulate.
std::string SurveyText(const SweepReport& report);
std::string SweepText(const SweepReport& report);
std::string SweepJson(const SweepReport& report);
absl::Span<const JsonField> SweepJsonFields();

}  // namespace optimus::tools
