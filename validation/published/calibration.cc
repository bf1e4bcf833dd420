#include "validation/published/calibration.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace optimus::validation {
namespace {

// "22" and "22.0" are one value.
bool Equal(const std::string& a, const std::string& b) {
  double x = 0, y = 0;
  if (absl::SimpleAtod(a, &x) && absl::SimpleAtod(b, &y)) return x == y;
  return a == b;
}

}  // namespace

bool CalibrationEntry::Names(const Row& row) const {
  return std::all_of(cells.begin(), cells.end(), [&](const auto& cell) {
    return row.knows(cell.first) && Equal(row.text(cell.first), cell.second);
  });
}

absl::StatusOr<CalibrationEntry> ParseCalibration(const std::string& profile,
                                                  const hw::CalibrationRow& row) {
  CalibrationEntry entry{profile, row.dataset(), {}};
  for (const absl::string_view piece : absl::StrSplit(row.row(), ',')) {
    const std::pair<std::string, std::string> cell = absl::StrSplit(piece, absl::MaxSplits('=', 1));
    if (cell.first.empty() || cell.second.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(profile, ": calibrated_on.row: \"", row.row(),
                       "\" is not written as COLUMN=VALUE,COLUMN=VALUE"));
    }
    entry.cells.push_back(cell);
  }
  return entry;
}

absl::StatusOr<std::vector<CalibrationEntry>> ZooCalibrations() {
  std::vector<CalibrationEntry> entries;
  for (const std::string& name : hw::ZooProfiles()) {
    OPTIMUS_ASSIGN_OR_RETURN(const hw::HardwareProfile profile, hw::LoadProfile(name));
    for (const hw::CalibrationRow& row : profile.calibrated_on()) {
      OPTIMUS_ASSIGN_OR_RETURN(CalibrationEntry entry, ParseCalibration(name, row));
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

std::vector<std::string> FittedProfiles(const std::vector<CalibrationEntry>& entries,
                                        const std::string& dataset, const Row& row) {
  std::vector<std::string> profiles;
  for (const CalibrationEntry& entry : entries) {
    if (entry.dataset == dataset && entry.Names(row) &&
        std::find(profiles.begin(), profiles.end(), entry.profile) == profiles.end()) {
      profiles.push_back(entry.profile);
    }
  }
  return profiles;
}

}  // namespace optimus::validation
