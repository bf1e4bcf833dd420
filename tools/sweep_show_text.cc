#include "tools/sweep_show_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/sweep/show/plot_pieces.h"
#include "tools/text_pieces.h"
#include "tools/text_table.h"

namespace optimus::tools {
namespace {

using sweep::Answer;
using sweep::SqlValue;

constexpr int kDigits = 5;

// Digits after the point that give the largest number of a column kDigits in all.
int DecimalsFor(double largest) {
  if (!(largest > 0)) return 0;
  return std::clamp(kDigits - 1 - static_cast<int>(std::floor(std::log10(largest))), 0, 6);
}

// Of a measured column; values of axes stay as they were given.
std::string Cell(const SqlValue& value, bool rounded, int decimals) {
  const auto* real = std::get_if<double>(&value);
  if (real != nullptr && rounded) return absl::StrFormat("%.*f", decimals, *real);
  if (std::holds_alternative<std::monostate>(value)) return "-";
  return sweep::ToText(value);
}

int DecimalsOf(const sweep::SqlTable& table, const std::vector<std::size_t>& rows,
               std::size_t column) {
  double largest = 0;
  for (const std::size_t row : rows) {
    const std::optional<double> value = sweep::ToNumber(table.rows[row][column]);
    if (value) largest = std::max(largest, std::abs(*value));
  }
  return DecimalsFor(largest);
}

bool IsMeasured(const sweep::Column& column) {
  return column.kind == sweep::ColumnKind::kMetric || column.kind == sweep::ColumnKind::kCondition;
}

std::string TableText(const std::vector<sweep::Column>& columns, const sweep::SqlTable& table,
                      const std::vector<std::size_t>& rows) {
  std::vector<Column> heads;
  std::vector<int> decimals;
  heads.reserve(columns.size());
  decimals.reserve(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    heads.push_back({{columns[i].name, columns[i].unit}, columns[i].type == "TEXT"});
    decimals.push_back(DecimalsOf(table, rows, i));
  }
  TextTable text(std::move(heads));
  for (const std::size_t row : rows) {
    std::vector<std::string> cells;
    cells.reserve(columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      cells.push_back(Cell(table.rows[row][i], IsMeasured(columns[i]), decimals[i]));
    }
    text.AddRow(std::move(cells));
  }
  return text.Render();
}

std::vector<std::size_t> AllOf(const sweep::SqlTable& table) {
  std::vector<std::size_t> rows(table.rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  return rows;
}

std::string GoodText(const sweep::Aim& aim) {
  return absl::StrCat(aim.column.name, " (", aim.high ? "high" : "low", " is good)");
}

// ", 3 failed"; nothing for none.
void AppendCount(std::int64_t count, const char* what, std::string& out) {
  if (count > 0) absl::StrAppend(&out, ", ", count, " ", what);
}

std::string PointsText(const sweep::Summary& summary) {
  std::string out =
      absl::StrCat(summary.counts.done(), " of ", Count(summary.points, "point is", "points are"),
                   " done: ", summary.counts.ok, " ok");
  AppendCount(summary.counts.impossible, "impossible", out);
  AppendCount(summary.counts.failed, "failed", out);
  AppendCount(summary.counts.out_of_memory, "out of this machine's memory", out);
  AppendCount(summary.counts.timeout, "out of time", out);
  if (summary.excluded > 0) {
    absl::StrAppend(&out, "; conditions exclude ",
                    Count(summary.excluded, "combination", "combinations"));
  }
  if (summary.total_points > summary.points) {
    absl::StrAppend(&out, "; a part of a sweep of ", summary.total_points, " points");
  }
  return out;
}

std::string AnswersText(const Answer& answer) {
  const sweep::Summary& summary = answer.summary;
  std::string out = Count(summary.selected - summary.left_out, "point", "points");
  if (!answer.filter.where.empty()) absl::StrAppend(&out, " where ", answer.filter.where);
  if (summary.left_out > 0) {
    absl::StrAppend(&out, "; ", Count(summary.left_out, "plan does", "plans do"),
                    " not fit into a GPU's memory and ", summary.left_out == 1 ? "is" : "are",
                    " left out (--all keeps them)");
  }
  return out;
}

std::string MeansText(const Answer& answer) {
  const sweep::Summary& summary = answer.summary;
  std::string out =
      absl::StrCat("means over ", sweep::SeedsText(answer.filter.seeds), " (--per-seed: each one)");
  if (summary.seeds_missing > 0) {
    absl::StrAppend(&out, "; ", summary.seeds_missing, " of their ",
                    Count(summary.seeds_asked, "point", "points"), " did not run and ",
                    summary.seeds_missing == 1 ? "is" : "are", " missing");
  }
  return out;
}

std::string VersionText(const Answer& answer) {
  const std::vector<std::string>& versions = answer.summary.versions;
  if (versions.size() > 1) {
    return absl::StrCat("mixed: ", absl::StrJoin(versions, ", "),
                        "; results of different versions need not compare");
  }
  return versions.empty() ? answer.about.version : versions.front();
}

void AppendHead(const Answer& answer, std::string& out) {
  std::string name = answer.about.sweep_name;
  if (!answer.about.description.empty()) absl::StrAppend(&name, ": ", answer.about.description);
  AppendFact("sweep", name, out);
  AppendFact("version", VersionText(answer), out);
  const std::vector<std::string>& profiles = answer.summary.profile_hashes;
  if (!profiles.empty()) {
    AppendFact(
        profiles.size() == 1 ? "profile" : "profiles",
        profiles.size() == 1
            ? profiles.front()
            : absl::StrCat(profiles.size(), " different ones: ", absl::StrJoin(profiles, ", ")),
        out);
  }
  AppendFact("points", PointsText(answer.summary), out);
  AppendFact("answers", absl::StrCat("from ", AnswersText(answer)), out);
  if (answer.filter.seeds.on()) AppendFact("seeds", MeansText(answer), out);
}

void AppendBest(const Answer& answer, std::string& out) {
  const sweep::BestList& best = *answer.best;
  absl::StrAppend(&out, "\nThe best ", best.table.rows.size(), " of ", best.of, " by ",
                  GoodText(answer.aim), "\n",
                  TableText(best.columns, best.table, AllOf(best.table)));
}

void AppendGroups(const Answer& answer, std::string& out) {
  const sweep::GroupList& groups = *answer.groups;
  absl::StrAppend(&out, "\nThe best of every ", absl::StrJoin(sweep::Names(groups.by), ", "),
                  " by ", GoodText(answer.aim), "\n",
                  TableText(groups.columns, groups.table, AllOf(groups.table)));
}

void AppendFront(const Answer& answer, std::string& out) {
  const sweep::Front& front = *answer.front;
  std::vector<std::string> measures;
  measures.reserve(front.aims.size());
  for (const sweep::Aim& aim : front.aims) measures.push_back(GoodText(aim));
  absl::StrAppend(
      &out, "\nPareto front of ", absl::StrJoin(measures, ", "), ": ", front.members.size(), " of ",
      Count(std::ssize(front.values), "point", "points"),
      front.without == 0 ? "" : absl::StrCat("; ", front.without, " more lack one of these"), "\n",
      TableText(answer.front_columns, front.table, front.members));
}

std::string SpreadText(const sweep::AxisEffect& effect) {
  std::string out = effect.spread ? absl::StrFormat("%.3f", *effect.spread) : "-";
  if (!effect.zipped.empty()) {
    absl::StrAppend(&out, " (together with ", absl::StrJoin(effect.zipped, ", "), ")");
  }
  return absl::StrCat(effect.axis.name, " ", out);
}

void AddEffect(const sweep::AxisEffect& effect, int decimals, TextTable& table) {
  bool first = true;
  for (const sweep::AxisValue& value : effect.values) {
    const bool reference = effect.reference && value.value == *effect.reference;
    table.AddRow({first ? effect.axis.name : "", sweep::ToText(value.value),
                  absl::StrCat(value.points), absl::StrFormat("%.*f", decimals, value.best),
                  absl::StrFormat("%.*f", decimals, value.geometric_mean),
                  reference ? "reference" : absl::StrCat(value.pairs),
                  value.ratio ? absl::StrFormat("%.4f", *value.ratio) : "-"});
    first = false;
  }
}

void AppendSensitivity(const Answer& answer, std::string& out) {
  const sweep::Sensitivity& sensitivity = *answer.sensitivity;
  const sweep::Column& objective = sensitivity.objective.column;
  std::vector<std::string> spreads;
  spreads.reserve(sensitivity.axes.size());
  double largest = 0;
  for (const sweep::AxisEffect& effect : sensitivity.axes) {
    spreads.push_back(SpreadText(effect));
    for (const sweep::AxisValue& value : effect.values) {
      largest = std::max(largest, std::max(value.best, value.geometric_mean));
    }
  }
  absl::StrAppend(&out, "\nSensitivity of ", GoodText(sensitivity.objective), " over ",
                  Count(sensitivity.points, "point", "points"));
  if (sensitivity.left_out > 0) {
    absl::StrAppend(&out, "; ", sensitivity.left_out, " without a value above 0 are left out");
  }
  absl::StrAppend(
      &out, "\n",
      Wrap(absl::StrCat("largest / smallest ratio of an axis: ",
                        spreads.empty() ? "no axis has two values" : absl::StrJoin(spreads, ", ")),
           2),
      "\n");
  TextTable table({{{"axis", ""}, true},
                   {{"value", ""}, false},
                   {{"points", ""}, false},
                   {{"best", objective.unit}, false},
                   {{"geo. mean", objective.unit}, false},
                   {{"pairs", ""}, false},
                   {{"ratio", ""}, false}});
  for (const sweep::AxisEffect& effect : sensitivity.axes) {
    AddEffect(effect, DecimalsFor(largest), table);
  }
  absl::StrAppend(&out, table.Render(),
                  "pairs: points that differ from one of the reference in this axis only; ratio: "
                  "their geometric mean\n");
}

void AppendErrors(const Answer& answer, std::string& out) {
  const sweep::ErrorList& errors = *answer.errors;
  std::vector<std::string> lines;
  lines.reserve(errors.groups.size());
  for (const sweep::ErrorGroup& group : errors.groups) {
    std::vector<std::string> axes;
    axes.reserve(errors.axes.size());
    for (std::size_t i = 0; i < errors.axes.size(); ++i) {
      axes.push_back(absl::StrCat(errors.axes[i].name, " ", sweep::ToText(group.axes[i])));
    }
    lines.push_back(absl::StrCat(group.status, ", ", Count(group.points, "point", "points"), ": ",
                                 group.error, " (point ", group.example, ": ",
                                 absl::StrJoin(axes, ", "), ")"));
  }
  if (lines.empty()) lines.emplace_back("none");
  AppendBullets("Points without a result, by message", lines, out);
}

}  // namespace

std::string SweepShowText(const Answer& answer) {
  std::string out;
  AppendHead(answer, out);
  if (answer.best) AppendBest(answer, out);
  if (answer.groups) AppendGroups(answer, out);
  if (answer.front) AppendFront(answer, out);
  if (answer.sensitivity) AppendSensitivity(answer, out);
  if (answer.errors) AppendErrors(answer, out);
  return out;
}

}  // namespace optimus::tools
