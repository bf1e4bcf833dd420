#pragma once
// Which rows of a data set a profile was fitted on, by what the profiles themselves say.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hw_profiles/profile.h"
#include "validation/published/row.h"

namespace optimus::validation {

// The rows that one entry of a profile names: those whose cells in every named column are equal.
struct CalibrationEntry {
  std::string profile, dataset;
  std::vector<std::pair<std::string, std::string>> cells;  // column, value
  bool Names(const Row& row) const;
};

// INVALID_ARGUMENT where the row is not written as COLUMN=VALUE,COLUMN=VALUE.
absl::StatusOr<CalibrationEntry> ParseCalibration(const std::string& profile,
                                                  const hw::CalibrationRow& row);

// Of every profile of the zoo: a row that any of them was fitted on is no prediction.
absl::StatusOr<std::vector<CalibrationEntry>> ZooCalibrations();

// Names of the profiles that were fitted on the row, in the order of the entries.
std::vector<std::string> FittedProfiles(const std::vector<CalibrationEntry>& entries,
                                        const std::string& dataset, const Row& row);

}  // namespace optimus::validation
