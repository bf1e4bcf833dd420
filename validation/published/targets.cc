#include "validation/published/targets.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/csv.h"
#include "base/status_macros.h"
#include "validation/published/data_set.h"

namespace optimus::validation {
namespace {

constexpr Statistic kStatistics[] = {Statistic::kMean, Statistic::kLargest, Statistic::kHighest,
                                     Statistic::kKendall};

std::optional<Statistic> Parse(const std::string& text) {
  for (const Statistic statistic : kStatistics) {
    if (text == ToString(statistic)) return statistic;
  }
  return std::nullopt;
}

absl::StatusOr<Target> TargetOf(const CsvFile& file, const CsvRow& row) {
  Target target;
  target.dataset = row.fields[0];
  target.quantity = row.fields[1];
  target.group = row.fields[2];
  target.note = row.fields[5];
  if (FindDataSet(target.dataset) == nullptr) {
    return file.Error(row, absl::StrCat("column dataset: \"", target.dataset, "\" is not known"));
  }
  const std::optional<Statistic> statistic = Parse(row.fields[3]);
  if (!statistic) {
    return file.Error(row, absl::StrCat("column statistic: \"", row.fields[3],
                                        "\" is not known; one of mean_abs_error, max_abs_error, "
                                        "max_error, kendall_tau"));
  }
  target.statistic = *statistic;
  if (!absl::SimpleAtod(row.fields[4], &target.limit) || !std::isfinite(target.limit)) {
    return file.Error(row, absl::StrCat("column limit: \"", row.fields[4], "\" is no number"));
  }
  return target;
}

}  // namespace

const char* ToString(Statistic statistic) {
  switch (statistic) {
    case Statistic::kMean:
      return "mean_abs_error";
    case Statistic::kLargest:
      return "max_abs_error";
    case Statistic::kHighest:
      return "max_error";
    case Statistic::kKendall:
      break;
  }
  return "kendall_tau";
}

absl::StatusOr<std::vector<Target>> ReadTargets(const std::string& path) {
  OPTIMUS_ASSIGN_OR_RETURN(const CsvFile file, ReadCsv(path, {"dataset", "quantity", "group",
                                                              "statistic", "limit", "note"}));
  std::vector<Target> targets;
  targets.reserve(file.rows.size());
  for (const CsvRow& row : file.rows) {
    OPTIMUS_ASSIGN_OR_RETURN(Target target, TargetOf(file, row));
    targets.push_back(std::move(target));
  }
  return targets;
}

}  // namespace optimus::validation
