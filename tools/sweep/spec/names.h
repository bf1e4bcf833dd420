#pragma once
// What the columns of a sweep are called, and what is printed beside their numbers.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "schedule/step/experiment.pb.h"
#include "tools/sweep/spec/field_path.h"

namespace optimus::sweep {

// "dp" of plan.data_parallel; of most fields their last part.
std::string ShortName(const FieldPath& field);
// What the last part of a field's name ends in: "GB/s" of bandwidth_gb_per_s; empty where nothing.
std::string UnitOf(const std::string& field);
// "bandwidth": without unit and underscores.
std::string TitleOf(const std::string& field);

// Lower case letters, digits and '_', not a digit first, at most 60; no name of a metric or of
// another column of the tables.
absl::Status CheckName(const std::string& name);

// What conditions may use of every point's experiment.
struct ExperimentValue {
  const char* name;
  const char* field;  // that it is the value of
  std::int64_t (*value)(const step::Experiment& experiment);
};
const std::vector<ExperimentValue>& ExperimentValues();

}  // namespace optimus::sweep
